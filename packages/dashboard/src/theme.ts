/** Dark, light, or what the system says. The only thing that the dashboard stores in the browser. */

/** What the user chose. */
export type Theme = "system" | "light" | "dark";

export const THEMES: readonly Theme[] = ["system", "light", "dark"];
const KEY = "hibernaut-theme";
/** Told when colors change, by choice or by the system. */
const listeners = new Set<() => void>();

/** Returns the stored choice. */
export function chosenTheme(): Theme {
  try {
    const stored = localStorage.getItem(KEY);
    return THEMES.find((theme) => theme === stored) ?? "system";
  } catch {
    // A browser that stores nothing still has a system theme.
    return "system";
  }
}

/** Applies a choice to the page, and stores it. */
export function chooseTheme(theme: Theme): void {
  try {
    if (theme === "system") localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, theme);
  } catch {
    // It then lasts until the page is loaded again.
  }
  applyTheme(theme);
}

/** Applies a theme to the page. */
export function applyTheme(theme: Theme): void {
  const root = document.documentElement;
  if (theme === "system") root.removeAttribute("data-theme");
  else root.setAttribute("data-theme", theme);
  tell();
}

/** Calls back when the page's colors change. Returns a function that ends that. */
export function onColors(listener: () => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

function tell(): void {
  for (const listener of listeners) listener();
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", tell);
