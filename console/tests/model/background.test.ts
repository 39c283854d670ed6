import { describe, expect, it } from "vitest";
import { readBackground } from "../../src/model/background";
import { projectionOf } from "../../src/model/layout";
import type { Message, Meta } from "../../src/schema/messages";
import { campus, onEarth } from "../support/meshes";

const metaOf = (messages: Message[]) => messages[0] as { type: "meta" } & Meta;
const plan = metaOf(campus());
const town = metaOf(onEarth(campus(), 52.5, 13.4));

const collection = (...geometries: object[]) =>
  JSON.stringify({
    type: "FeatureCollection",
    features: geometries.map((geometry) => ({ type: "Feature", properties: null, geometry })),
  });

describe("a background", () => {
  it("has the lines and areas of a file, in metres where nodes have metres", () => {
    const ring = [
      [0, 0],
      [80, 0],
      [80, 40],
      [0, 0],
    ];
    const text = collection(
      { type: "LineString", coordinates: ring },
      { type: "MultiLineString", coordinates: [ring, ring] },
      { type: "Polygon", coordinates: [ring, ring] },
      { type: "MultiPolygon", coordinates: [[ring], [ring]] },
      { type: "Point", coordinates: [1, 2] },
      { type: "GeometryCollection", geometries: [{ type: "LineString", coordinates: ring }] },
    );
    const { lines, areas } = readBackground(text, plan);
    expect([lines.length, areas.map((rings) => rings.length)]).toEqual([4, [2, 1, 1]]);
    expect(lines[0]![1]).toEqual({ kind: "plan", x: 80, y: 0, z: 0 });
    expect(() => readBackground(text, town)).toThrow(/another place/);
  });

  it("is drawn where nodes with the same coordinates are", () => {
    const [first] = town.nodes;
    const position = first!.position!;
    if (position.kind !== "earth") throw new Error("they are on the Earth");
    const at = [position.longitude, position.latitude];
    const east = [position.longitude + 0.001, position.latitude];
    const { lines } = readBackground(
      JSON.stringify({ type: "LineString", coordinates: [at, east] }),
      town,
    );
    const project = projectionOf(town, false);
    const [a, b] = lines[0]!.map(project);
    expect(a).toEqual(project(position));
    // A thousandth of a degree at 52.5 degrees north.
    expect(b!.x - a!.x).toBeCloseTo(67.8, 0);
    expect(b!.y).toBe(a!.y);
  });

  it("says what is wrong with a file", () => {
    for (const [text, problem] of [
      ["<svg/>", /no GeoJSON/],
      ['"x"', /no lines or areas/],
      [collection({ type: "Point", coordinates: [13.4, 52.5] }), /no lines or areas/],
      [collection({ type: "LineString", coordinates: [[52.5], [1]] }), /not two numbers/],
      [collection({ type: "LineString", coordinates: 5 }), /no points/],
      [collection({ type: "LineString", coordinates: [[389000, 5820000]] }), /WGS 84/],
      // Latitude first.
      [collection({ type: "LineString", coordinates: [[52.5, 13.4]] }), /another place/],
    ] as const) {
      expect(() => readBackground(text, town), text).toThrow(problem);
    }
    const long = Array.from({ length: 400_001 }, () => [0, 0]);
    const many = JSON.stringify({ type: "LineString", coordinates: long });
    expect(() => readBackground(many, plan)).toThrow(/more than 400000 points/);
  });
});
