import { Compile } from "typebox/schema";
import { expect, test, vi } from "vitest";
import { extractComponents } from "../src/openapi.ts";
import { testApi } from "./helpers.ts";
import type { ApiDocument } from "./openapi-check.ts";

test("the document is OpenAPI 3.1, every reference in it resolves, and every schema compiles", async () => {
  const { server } = await testApi();
  const document = (await (await fetch(`${server.url}/openapi.json`)).json()) as ApiDocument;
  expect(document.openapi).toBe("3.1.0");
  const names = new Set(Object.keys(document.components.schemas));
  for (const [, name] of JSON.stringify(document).matchAll(/"#\/components\/schemas\/(\w+)"/g))
    expect(names).toContain(name);
  expect(JSON.stringify(document)).not.toMatch(/"\$ref":"(?!#\/components\/schemas\/)/);
  for (const schema of names) Compile({ $ref: `#/components/schemas/${schema}`, components: document.components });
});

test("the document is written once, and is the same for everyone who asks", async () => {
  const { server } = await testApi();
  const written = vi.spyOn(JSON, "stringify");
  const ask = async () => {
    const reply = await fetch(`${server.url}/openapi.json`);
    return { type: reply.headers.get("content-type"), text: await reply.text() };
  };
  const first = await ask();
  expect(first.type).toBe("application/json; charset=utf-8");
  written.mockClear();
  expect(await ask()).toEqual(first);
  expect(written.mock.calls.filter(([value]) => typeof value === "object" && "openapi" in value)).toEqual([]);
  written.mockRestore();
});

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
