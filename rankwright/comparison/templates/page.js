"use strict";
const by = (id) => document.getElementById(id);

// --- theme ----------------------------------------------------------------------------------------

function setTheme(theme) {
  const signs = { auto: "◐ auto", light: "☀ light", dark: "☾ dark" };
  const words = { auto: "as the system", light: "light", dark: "dark" };
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  by("theme").textContent = signs[theme];
  by("theme").setAttribute("aria-label", `Theme: ${words[theme]}`);
  by("theme").value = theme;
  try { localStorage.setItem("rankwright-theme", theme); } catch { /* a page without storage */ }
}

function startTheme() {
  let kept = "auto";
  try { kept = localStorage.getItem("rankwright-theme") || "auto"; } catch { /* as above */ }
  setTheme(["auto", "light", "dark"].includes(kept) ? kept : "auto");
  const next = { auto: "light", light: "dark", dark: "auto" };
  by("theme").addEventListener("click", () => setTheme(next[by("theme").value]));
}

// --- explanations on hover and focus ------------------------------------------------------------------

function startTips() {
  const tip = by("tip");
  const show = (event) => {
    const on = event.target.closest && event.target.closest("[data-tip]");
    if (!on) return;
    tip.textContent = on.dataset.tip;
    tip.hidden = false;
    on.setAttribute("aria-describedby", "tip");
    const at = on.getBoundingClientRect(), size = tip.getBoundingClientRect();
    const below = at.bottom + 6 + size.height < innerHeight;
    tip.style.top = `${below ? at.bottom + 6 : Math.max(4, at.top - 6 - size.height)}px`;
    tip.style.left = `${Math.max(4, Math.min(at.left, document.documentElement.clientWidth - size.width - 4))}px`;
  };
  const hide = () => {
    tip.hidden = true;
    for (const on of document.querySelectorAll("[aria-describedby='tip']")) on.removeAttribute("aria-describedby");
  };
  document.addEventListener("mouseover", (event) => { if (event.target !== tip) { hide(); show(event); } });
  document.addEventListener("focusin", show);
  document.addEventListener("focusout", hide);
  document.addEventListener("scroll", hide, true);
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
}
