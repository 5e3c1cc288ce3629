import { isHibernautError } from "@hibernaut/domain/errors";
import { pinned, splitPin } from "@hibernaut/domain/pinned";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { formatReference, parseReference } from "../src/reference.ts";

const HEX = "0123456789abcdef".repeat(4);

describe("valid references", () => {
  test.each([
    ["redis", "docker://docker.io/library/redis:latest"],
    ["redis:7", "docker://docker.io/library/redis:7"],
    ["docker://redis:7", "docker://docker.io/library/redis:7"],
    ["docker.io/redis", "docker://docker.io/library/redis:latest"],
    ["index.docker.io/me/app:1", "docker://docker.io/me/app:1"],
    ["me/app", "docker://docker.io/me/app:latest"],
    ["localhost/app:1", "docker://localhost/app:1"],
    ["localhost:5000/a/b", "docker://localhost:5000/a/b:latest"],
    ["ghcr.io/me/app:v1.2_3-4", "docker://ghcr.io/me/app:v1.2_3-4"],
    ["Host/app", "docker://Host/app:latest"],
    [`redis@sha256:${HEX}`, `docker://docker.io/library/redis@sha256:${HEX}`],
    [`h.io/app:1@sha256:${HEX}`, `docker://h.io/app@sha256:${HEX}`],
    ["oci:/srv/app", "oci:/srv/app"],
    ["oci:app:1", "oci:app:1"],
    ["oci-archive:./a b.tar".replace(" ", "_"), "oci-archive:./a_b.tar"],
    ["docker-archive:/x.tar:me/app:1", "docker-archive:/x.tar:me/app:1"],
    ["docker-daemon:shop", "docker-daemon:docker.io/library/shop:latest"],
    ["docker-daemon:me/shop:1", "docker-daemon:docker.io/me/shop:1"],
    ["docker-archive:/x.tar:@0", "docker-archive:/x.tar:@0"],
  ])("%s is %s", (text, full) => {
    expect(formatReference(parseReference(text))).toBe(full);
  });
});

describe("a digest pins every kind of reference", () => {
  test.each([
    ["oci:/srv/app", "oci:/srv/app"],
    ["docker-archive:/x.tar:me/app:1", "docker-archive:/x.tar:me/app:1"],
    ["docker-daemon:me/shop:1", "docker-daemon:docker.io/me/shop:1"],
    ["h.io/app:1", `docker://h.io/app@sha256:${HEX}`],
  ])("%s", (text, full) => {
    const ref = pinned(text, `sha256:${HEX}`);
    const reference = parseReference(ref);
    expect(reference.digest).toBe(`sha256:${HEX}`);
    expect(formatReference(reference)).toBe(full);
    expect(splitPin(ref)).toEqual({ name: text, digest: `sha256:${HEX}` });
    expect(pinned(ref, `sha256:${HEX.replaceAll("0", "f")}`)).toBe(`${text}@sha256:${HEX.replaceAll("0", "f")}`);
  });
});

describe("invalid references, and the reason", () => {
  test.each([
    ["", "it is empty"],
    ["a b", "a space or a control character"],
    ["a\u0000", "a space or a control character"],
    ["x".repeat(5000), "longer than 4096"],
    ["Redis", "uppercase"],
    ["ghcr.io/", "the name of the image is missing"],
    ["a:b:c", "not a"],
    ["app:", '"" is not a valid tag'],
    ["app:-x", '"-x" is not a valid tag'],
    ["app@sha256:12", "64 lowercase hex digits"],
    [`app@sha256:${HEX}@sha256:${HEX}`, "more than one @"],
    ["./app.tar", "looks like a path"],
    ["/srv/app", "looks like a path"],
    ["app.tar", "looks like a path"],
    ["docker:redis", "followed by //"],
    ["containers-storage:redis:7", "containers-storage: is not a supported kind"],
    [`docker-daemon:redis@sha256:${HEX}`, "by its tag"],
    ["docker-daemon:", "the name of the image is missing"],
    ["dir:/srv/app", "dir: is not a supported kind"],
    ["https://ghcr.io/app", "https: is not a supported kind"],
    ["oci-archive:", "followed by a path"],
    ["oci-archive:/x.tar:", "not a valid image name"],
    ["oci:/x:--option", "not a valid image name"],
    ["user:secret@host/app", "@ must be followed by a digest"],
    [`${"a/".repeat(200)}a`, "longer than 255"],
    ["a..b/c", "is not a valid registry name"],
  ])("%s", (text, reason) => {
    expect(() => parseReference(text)).toThrow(reason);
  });
});

describe("any text", () => {
  const word = fc.stringMatching(/^[a-z0-9]{1,8}$/);
  const reference = fc.oneof(
    fc.string({ maxLength: 60 }),
    fc
      .array(fc.constantFrom("a", "B", "1", ".", "/", ":", "@", "-", "_", "oci", "docker", "//", `sha256:${HEX}`), {
        maxLength: 12,
      })
      .map((parts) => parts.join("")),
  );

  test("is parsed or refused with invalid_argument, and never starts with an option", () => {
    fc.assert(
      fc.property(reference, (text) => {
        try {
          expect(formatReference(parseReference(text))).toMatch(
            /^(docker:\/\/|oci:|oci-archive:|docker-archive:)[^\s]+$/,
          );
        } catch (error) {
          if (!isHibernautError(error, "invalid_argument")) throw error;
        }
      }),
      { numRuns: 2000 },
    );
  });

  test("in full form is parsed as the same reference", () => {
    const host = fc.oneof(
      fc.constant("docker.io"),
      word.map((name) => `${name}.example`),
      fc.constant("localhost:5000"),
    );
    fc.assert(
      fc.property(host, word, word, fc.stringMatching(/^\w[\w.-]{0,20}$/), (name, folder, image, tag) => {
        const text = `docker://${name}/${folder}/${image}:${tag}`;
        expect(formatReference(parseReference(text))).toBe(text);
      }),
    );
  });

  test("of any length is parsed quickly", () => {
    const start = performance.now();
    for (const text of [`${"a-".repeat(2000)}!`, `${"a.".repeat(2000)}/x`, `${"a/".repeat(2000)}!`]) {
      expect(() => parseReference(text)).toThrow("cannot be used");
    }
    expect(performance.now() - start).toBeLessThan(500);
  });
});
