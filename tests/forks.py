"""Work that several processes do at once."""

import os


def statuses_of_forks(n, work):
    """Call ``work`` in ``n`` children at once; return their exit statuses, 1 where it raised."""
    children = []
    for _ in range(n):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                work()
                status = 0
            finally:
                os._exit(status)
        children.append(child)
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
