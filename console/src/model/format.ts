/** Numbers as people read them: three digits, and the unit that fits. */
import type { Field } from "../schema/messages";

const PREFIXES = ["", "k", "M", "G", "T", "P"];

/** Returns a number with about three digits, such as `2.92`, `29.2`, `292`. */
export function digits(value: number): string {
  const size = Math.abs(value);
  if (size === 0) return "0";
  return value.toFixed(size < 10 ? 2 : size < 100 ? 1 : 0);
}

function scaled(value: number, step: number, unit: string): string {
  let place = 0;
  let size = value;
  while (Math.abs(size) >= step * 0.9995 && place < PREFIXES.length - 1) {
    size /= step;
    place += 1;
  }
  const number = place === 0 ? String(Math.round(size)) : digits(size);
  return `${number} ${PREFIXES[place] ?? ""}${unit}`;
}

/** Returns a rate, such as `2.92 Mbit/s`. */
export function bitRate(bps: number): string {
  return scaled(bps, 1000, "bit/s");
}

/** Returns a size, such as `2.30 MB`. */
export function bytes(size: number): string {
  return scaled(size, 1000, "B");
}

/** Returns a number of things, such as `12.3 k`, without a blank where there is no prefix. */
export function count(number: number): string {
  return number < 10_000 ? String(Math.round(number)) : scaled(number, 1000, "");
}

/** Returns a share, such as `12.3 %`. */
export function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}

/** Returns how much of something is there: 100 % only once it is whole. */
export function progress(share: number): string {
  return percent(Math.floor(Math.min(share, 1) * 1000) / 1000);
}

/** Returns a delay, such as `12.3 ms`. */
export function delay(seconds: number): string {
  return seconds < 1 ? `${digits(seconds * 1000)} ms` : `${digits(seconds)} s`;
}

/** Returns a value in its unit. */
export function inUnit(value: number, unit: Field["unit"]): string {
  switch (unit) {
    case "bytes":
      return bytes(value);
    case "bits":
      return scaled(value, 1000, "bit");
    case "seconds":
      return delay(value);
    case "ratio":
      return percent(value);
    case "packets":
    case "frames":
    case "":
      return count(value);
  }
}

/** Returns the known quantities of a state, each with its name, such as `packets sent 12.3 k`. */
export function quantities(fields: readonly Field[], now: object): string[] {
  return fields.flatMap(({ name, title, unit }) => {
    const value = (now as Record<string, unknown>)[name];
    const isShown = unit !== "" && typeof value === "number";
    return isShown ? [`${title.toLowerCase()} ${inUnit(value, unit)}`] : [];
  });
}

/** Returns a time of the run, such as `1:02.5`, or `26:01:02.5` from an hour on. */
export function clock(seconds: number): string {
  const tenths = Math.max(0, Math.round(seconds * 10));
  const rest = ((tenths % 600) / 10).toFixed(1).padStart(4, "0");
  const minutes = Math.floor(tenths / 600);
  if (minutes < 60) return `${minutes}:${rest}`;
  return `${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, "0")}:${rest}`;
}

/** Returns a time of the run at an axis, such as `12 s` or `26:01:02`. */
export function axisTime(seconds: number): string {
  return seconds < 600 ? `${seconds} s` : clock(seconds).replace(/\.0$/, "");
}

/** Returns a ratio, such as `2.38`. */
export function ratio(value: number): string {
  return value < 10 ? value.toFixed(2) : digits(value);
}
