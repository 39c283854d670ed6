/** Light or dark, as the system says until the user chooses. */

type Name = "light" | "dark";

const KEPT = "ncmesh-theme";
const dark = window.matchMedia("(prefers-color-scheme: dark)");
const stillness = window.matchMedia("(prefers-reduced-motion: reduce)");

/** Storage that may be forbidden, as it is in pages opened from a file. */
function kept(): string | null {
  try {
    return localStorage.getItem(KEPT);
  } catch {
    return null;
  }
}

class Theme {
  name = $state<Name>("light");

  /** Applies what the user chose, or what the system says, and follows the system. */
  begin(): void {
    const chosen = kept();
    const system = () => (dark.matches ? "dark" : "light");
    this.apply(chosen === "light" || chosen === "dark" ? chosen : system());
    dark.addEventListener("change", () => kept() ?? this.apply(system()));
  }

  toggle(): void {
    this.apply(this.name === "light" ? "dark" : "light");
    try {
      localStorage.setItem(KEPT, this.name);
    } catch {
      // The choice lasts as long as the page.
    }
  }

  private apply(name: Name): void {
    document.documentElement.dataset["theme"] = name;
    this.name = name;
  }
}

export const theme = new Theme();

/** Whether the user asked the system for less motion. */
export function prefersLessMotion(): boolean {
  return stillness.matches;
}
