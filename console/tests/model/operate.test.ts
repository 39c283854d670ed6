import { afterEach, describe, expect, it, vi } from "vitest";
import { receiversOf, reloaded } from "../../src/model/operate";
import { Run } from "../../src/model/run";
import type { Node } from "../../src/schema/messages";
import { cancel, reload, send, WrongToken } from "../../src/sources/commands";
import { campus } from "../support/meshes";

/** Answers requests so, and returns those that were made. */
function answering(answer: () => Response): [string, RequestInit][] {
  const made: [string, RequestInit][] = [];
  vi.stubGlobal("fetch", (address: string, request: RequestInit) => {
    made.push([address, request]);
    return new Promise((done) => done(answer()));
  });
  return made;
}

afterEach(() => vi.unstubAllGlobals());

describe("a command", () => {
  it("has the token in its header, and nowhere else", async () => {
    const made = answering(() => Response.json({ id: "1-00000001" }, { status: 201 }));
    expect(await send("s3cret", { path: "/a", to: ["b"] })).toEqual({ id: "1-00000001" });
    const [[address, request]] = made as [[string, RequestInit]];
    expect([address, request.method]).toEqual(["v1/transfers", "POST"]);
    expect(request.body).toBe('{"path":"/a","to":["b"]}');
    expect(new Headers(request.headers).get("authorization")).toBe("Bearer s3cret");
    expect(address + String(request.body)).not.toContain("s3cret");
  });

  it("keeps a hostile id within its path", async () => {
    const made = answering(() => Response.json({ id: "" }));
    await cancel("s3cret", "../reload?x#y");
    expect(made[0]![0]).toBe("v1/transfers/..%2Freload%3Fx%23y");
  });

  it("is refused with what to do", async () => {
    const json = (status: number, error: string) => () =>
      Response.json({ error, code: "ended" }, { status });
    for (const [answer, problem] of [
      [json(409, "the transfer has ended already"), /^the transfer has ended already\.$/],
      [() => new Response("a\n", { status: 401 }), /does not take this token/],
      [() => new Response("a\n", { status: 403 }), /for looking only/],
      [() => new Response("<b>", { status: 502 }), /^The daemon answered with status 502\.$/],
      [() => new Response("<b>", { status: 200 }), /^The daemon answered with status 200\.$/],
      [
        () => {
          throw new TypeError("network");
        },
        /does not answer/,
      ],
    ] as [() => Response, RegExp][]) {
      answering(answer);
      await expect(cancel("s3cret", "1-00000001")).rejects.toThrow(problem);
    }
    answering(() => new Response("", { status: 401 }));
    await expect(reload("s3cret")).rejects.toBeInstanceOf(WrongToken);
  });

  it("is not sent with a token that no header can have", async () => {
    const made = answering(() => Response.json({}));
    for (const token of ["", "s3cret\nx: y", "s\u00e9cret"]) {
      await expect(reload(token)).rejects.toBeInstanceOf(WrongToken);
    }
    expect(made).toEqual([]);
  });
});

it("names receivers so that the daemon takes them for no others", () => {
  const node = (id: number, name: string): Node => ({ id, name, position: null });
  const nodes = [node(1, "me"), node(2, "b"), node(3, "twin"), node(4, "twin"), node(5, "")];
  const run = new Run("test");
  for (const message of campus(3, { observer: 1 })) {
    if (message.type === "meta") run.timeline.push({ ...message, nodes });
  }
  expect(receiversOf(run).map(({ name, address }) => [name, address])).toEqual([
    ["b", "b"],
    ["node 5", "5"],
    ["twin", "3"],
    ["twin", "4"],
  ]);
});

it("says what became of a configuration", () => {
  expect(reloaded({ changed: [], restart: [] })).toMatch(/^Nothing differs/);
  expect(reloaded({ changed: ["[a] b"], restart: ["[c]", "[d]"] })).toBe(
    "Changed: [a] b. Only after a restart: [c], [d].",
  );
});
