"""Models: how parameters make scores, and how a gradient in the scores reaches them."""
