/** The port that a deploy writes into an app file: where, and that nothing else changes. */
import { describe, expect, test } from "vitest";
import { openService, withPort } from "../../src/appfile/open-port.ts";
import { readAppFile } from "../../src/appfile/read.ts";

describe("the line is added below the header, and every other byte stays", () => {
  test.each<[string, string, string]>([
    [
      "with comments, in the indentation of the table",
      '# mine\napp = "a"\n\n[http_service] # web\n  # Sleep.\n  auto_stop_machines = "suspend"\n\n[env]\nA = "b"\n',
      "  internal_port = 3000\n",
    ],
    ["as the only key", "[http_service]\n[env]\n", "internal_port = 3000\n"],
    ["at the end of the text", "[http_service]", "\ninternal_port = 3000"],
    [
      "with Windows' line ends",
      '[env]\r\nA = "b"\r\n[http_service]\r\n\tidle_timeout = "1m"\r\n',
      "\tinternal_port = 3000\r\n",
    ],
    [
      "for a service",
      '[[services]]\nprotocol = "tcp"\n[[services.ports]]\nport = 80\nhandlers = ["http"]\n',
      "internal_port = 3000\n",
    ],
    ["with checks of that port", "[http_service]\n[[http_service.checks]]\npath = '/'\n", "internal_port = 3000\n"],
    [
      "with a text that looks like the header",
      '[env]\nA = """\n[http_service]\n"""\n[http_service]\n',
      "internal_port = 3000\n",
    ],
    ["after a byte order mark", "\uFEFF[http_service]\n", "internal_port = 3000\n"],
  ])("%s", (_what, text, line) => {
    const written = withPort(text, 3000) ?? "";
    const at = written.indexOf(line, text.lastIndexOf("[http_service]"));
    expect(`${written.slice(0, at)}${written.slice(at + line.length)}`).toBe(text);
    expect(readAppFile(written).file?.services[0]?.config.internal_port).toBe(3000);
  });

  test("with the line that `hibernaut launch` wrote for PORT, which would contradict it", () => {
    const env = (port: string) => `# PORT = "8080"\n[env]\r\n  PORT = "${port}" # mine\r\nA = "8080"\n`;
    expect(withPort(`${env("8080")}[http_service]\n`, 3000)).toBe(
      `${env("3000")}[http_service]\ninternal_port = 3000\n`,
    );
    // The user's own stays.
    expect(withPort(`${env("9000")}[http_service]\n`, 3000)).toContain('PORT = "9000"');
  });

  test.each([
    ["an inline table", 'http_service = { auto_stop_machines = "off" }\n'],
    ["keys with dots", 'http_service.auto_stop_machines = "off"\n'],
    ["no service", 'app = "a"\n'],
  ])("%s has no place for it", (_what, text) => expect(withPort(text, 3000)).toBeUndefined());
});

test("a port is open that the file leaves out, if there is one service, of one process group", () => {
  const isOpen = (text: string) => {
    const { file } = readAppFile(text);
    return file !== undefined && openService(file) !== undefined;
  };
  expect(isOpen("[http_service]\n")).toBe(true);
  expect(isOpen("[http_service]\ninternal_port = 8080\n")).toBe(false);
  expect(isOpen('app = "a"\n')).toBe(false);
  const groups = '[processes]\nweb = "a"\nadmin = "b"\n[http_service]\n';
  expect(isOpen(groups)).toBe(true);
  expect(isOpen(`${groups}processes = ["web", "admin"]\n`)).toBe(false);
  expect(isOpen("[http_service]\n[[services]]\ninternal_port = 25\nprotocol = 'tcp'\nports = [{ port = 25 }]\n")).toBe(
    false,
  );
});
