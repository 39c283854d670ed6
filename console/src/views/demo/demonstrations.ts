/** Demonstrations, in their order. */
import type { DemoRequest } from "../../sources/demo";

export interface About {
  id: DemoRequest["demonstration"];
  title: string;
  text: string;
  /** Names of both sides. */
  sides: [string, string];
  /** Quantity that is compared: rates of flows, or the time until every receiver has the file. */
  measure: "throughput" | "completion";
  /** Loss of all links at the start, 0 to 1; null if the scenario has its own. */
  loss: number | null;
  /** Speed of the animation, times real time. */
  speed: number;
  radius: number;
}

export const DEMONSTRATIONS: About[] = [
  {
    id: "cross",
    title: "Two flows cross at a relay",
    text:
      "s1 sends to d1, s2 to d2, and both need the relay. Forwarding, the relay sends every " +
      "packet on its own. Coding, it sends the sum of two: each end has overheard the packet " +
      "that it does not want, and takes it out.",
    sides: ["Forwarded", "Coded"],
    measure: "throughput",
    loss: 0.2,
    speed: 0.25,
    radius: 15,
  },
  {
    id: "building",
    title: "One file, many receivers",
    text:
      "A file goes to four receivers in a building of 22 routers. On the left packets are sent " +
      "as they are, and again where they were lost. On the right nodes send combinations, and " +
      "any one that is new helps every node that hears it.",
    sides: ["Uncoded", "Coded"],
    measure: "completion",
    loss: null,
    speed: 1,
    radius: 7,
  },
  {
    id: "hub",
    title: "TCP both ways through a relay",
    text:
      "Two TCP connections in opposite directions. The relay answers both ends with one frame: " +
      "each knows its own packet, and takes it out of the sum.",
    sides: ["Forwarded", "Coded"],
    measure: "throughput",
    loss: 0,
    speed: 0.25,
    radius: 15,
  },
];

/** Highest loss that can be chosen. Beyond, little arrives on either side. */
export const HIGHEST_LOSS = 0.5;
