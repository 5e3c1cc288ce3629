/** The state of devices without a memory, put into the form of any other. */
import { expect, test } from "vitest";
import { machineTypeIn, missingConfiguration } from "../src/qemu/device-stream.ts";

const ABOUT = { machineType: "pc-q35-7.2", capabilities: ["x-ignore-shared"] };
const begins = (byte: number) => Buffer.from([...Buffer.from("QEVM"), 0, 0, 0, 3, byte]);

test("a configuration that is missing is what QEMU 7.2 itself writes for this machine", () => {
  // Of `migrate`, with the same capabilities, on QEMU 7.2.22.
  const written =
    "070000000a70632d7133352d372e32051a636f6e66696775726174696f6e2f6361706162696c697469657300000001000000010f782d69676e6f72652d736861726564";
  expect(missingConfiguration(begins(4), ABOUT).toString("hex")).toBe(written);
});

test("a configuration that is there stays as it is", () => {
  expect(missingConfiguration(begins(7), ABOUT)).toHaveLength(0);
});

test.each([
  ["empty", Buffer.alloc(0)],
  ["cut short", begins(4).subarray(0, 8)],
  ["of another version", Buffer.from([...Buffer.from("QEVM"), 0, 0, 0, 4, 4])],
  ["something else", Buffer.from("not a state at all")],
])("a stream that is %s is refused", (_, beginning) => {
  expect(() => missingConfiguration(beginning, ABOUT)).toThrow("the devices' state is in an unknown form");
});

test("a machine's type is what its object's is, without what all of them have", () => {
  expect(machineTypeIn("pc-q35-7.2-machine")).toBe("pc-q35-7.2");
});
