/** Bodies with the field that frames them: by a length, chunked, or by both. */
import fc from "fast-check";
import { bytes, eol, field, joined, mostly, ows, several, words } from "./grammar-parts.ts";
import { LIMITS } from "./reading.ts";

const text = fc.oneof(bytes, words("abc|GET / HTTP/1.1\r\nHost: a\r\n\r\n|0\r\n\r\n"));
const name = (each: string) =>
  mostly(words(`${each}|${each.toLowerCase()}`), words(`${each} |${each.replace("-", "_")}|X-${each}`));
/** Body and field of a length that is usually right. */
const lengthFramed = text.chain((body) =>
  fc
    .tuple(
      name("Content-Length"),
      ows,
      mostly(
        words(`${body.length}|00${body.length}`),
        words(
          `${body.length + 1}|+${body.length}|${body.length},${body.length}|1e1|0x3||18446744073709551616|0000000000000000${body.length}`,
        ),
      ),
    )
    .map(([key, space, length]): [string, string] => [`${key}:${space}${length}${space}\r\n`, body]),
);

const extension = mostly(
  words(`||||;a|;a=b|;a="b\\"\t\xe9;";c|;;a|;=b|;a=`),
  fc.oneof(words(`;| ;a|;a |;a = b|;a="|;a="b"c|;@|;a=@|;a\n|;\x7f|;${"a".repeat(300)}`), joined(";", bytes)),
);
const chunk = text
  .filter((each) => each !== "")
  .chain((data) => {
    const size = data.length.toString(16);
    const sizes = mostly(
      words(`${size}|${size.toUpperCase()}|000${size}`),
      words(
        `+${size}|0x${size}| ${size}|${size} ||${size}_|000000000000${size}|1000000000000000${size}|${(data.length + 1).toString(16)}`,
      ),
    );
    return joined(sizes, extension, eol, data, eol);
  });
const oddTrailers = fc.oneof(
  words("Content-Length: 3|transfer-encoding: chunked|Host: b|Connection: close|Upgrade: x"),
  words(`X: ${"x".repeat(LIMITS.headBytes)}|${"X: x\r\n".repeat(LIMITS.headFields + 1)}Y: y`),
);
const chunked = joined(
  several(chunk, 3),
  mostly(words("0|000|0;a"), words("||00000000000000|-0")),
  eol,
  mostly(several(field, 2), joined(oddTrailers, eol)),
  eol,
);
const chunkedFramed = fc
  .tuple(
    joined(
      name("Transfer-Encoding"),
      ":",
      ows,
      mostly(
        fc.constant("chunked"),
        words("Chunked|gzip, chunked|chunked, gzip|chunked,|identity||xchunked|chunked;a"),
      ),
      ows,
    ),
    chunked,
  )
  .map(([line, body]): [string, string] => [`${line}\r\n`, body]);

/** Fields that frame, and the body. */
export const framed = fc.oneof(
  { weight: 8, arbitrary: fc.constant<[string, string]>(["", ""]) },
  { weight: 8, arbitrary: lengthFramed },
  { weight: 12, arbitrary: chunkedFramed },
  {
    weight: 1,
    arbitrary: fc.tuple(lengthFramed, chunkedFramed).map(([[a], [b, body]]): [string, string] => [a + b, body]),
  },
  {
    weight: 1,
    arbitrary: fc.tuple(chunkedFramed, lengthFramed).map(([[a], [b, body]]): [string, string] => [a + b, body]),
  },
);
