/** Keys of the console. Those of a focused control come first. */
import type { Player } from "./player.svelte";
import { theme } from "./theme.svelte";

/** Effects of the keys, for the help. */
export const KEYS: [string, string][] = [
  ["Space", "play or pause"],
  ["← →", "one step back or forward"],
  ["Shift ← →", "one second back or forward"],
  ["Home End", "start or end"],
  ["− +", "slower or faster"],
  ["1 … 9", "views"],
  ["T", "light or dark"],
  ["?", "this help"],
];

export interface Actions {
  help: () => void;
  view: (number: number) => void;
}

/** Does what a key stands for. */
export function handleKey(event: KeyboardEvent, player: Player, actions: Actions): void {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const target = event.target instanceof Element ? event.target : null;
  // A dialog that has just closed may still have the focus.
  if (target?.closest("input:not([type=range]), select, textarea, dialog[open]")) return;
  // A slider has its own use for these, and for no others.
  if (target?.matches("input") && /^(Arrow|Home|End)/.test(event.key)) return;
  // The space bar presses a focused button.
  if (event.key === " " && target?.closest("button, a, summary")) return;

  const sign = event.key === "ArrowLeft" ? -1 : 1;
  switch (event.key) {
    case " ":
      player.toggle();
      break;
    case "ArrowLeft":
    case "ArrowRight":
      if (event.shiftKey) player.skip(sign);
      else player.step(sign);
      break;
    case "Home":
      player.skip(-Infinity);
      break;
    case "End":
      player.skip(Infinity);
      break;
    case "-":
      player.faster(-1);
      break;
    case "+":
      player.faster(1);
      break;
    case "t":
      theme.toggle();
      break;
    case "?":
      actions.help();
      break;
    default:
      if (!/^[1-9]$/.test(event.key)) return;
      actions.view(Number(event.key) - 1);
  }
  event.preventDefault();
}
