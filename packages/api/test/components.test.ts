import { expect, test } from "vitest";
import { extractComponents } from "../src/components.ts";

const state = { title: "State", enum: ["on", "off"] };

test("a schema with a title is referred to wherever it occurs, also inside another one", () => {
  const machine = { title: "Machine", properties: { state, past: { items: state } } };
  expect(extractComponents({ "/one": machine, "/all": { items: machine } })).toEqual({
    paths: {
      "/one": { $ref: "#/components/schemas/Machine" },
      "/all": { items: { $ref: "#/components/schemas/Machine" } },
    },
    schemas: {
      Machine: {
        properties: {
          state: { $ref: "#/components/schemas/State" },
          past: { items: { $ref: "#/components/schemas/State" } },
        },
      },
      State: { enum: ["on", "off"] },
    },
  });
});

test("a property called title is not a name", () => {
  const book = { properties: { title: { type: "string" } } };
  expect(extractComponents({ "/book": book })).toEqual({ paths: { "/book": book }, schemas: {} });
});

test("two schemas cannot share a title", () => {
  expect(() => extractComponents({ "/a": state, "/b": { title: "State", enum: [] } })).toThrow("the title State");
});
