/** Streams of messages made by the grammar of RFC 9112. */
import fc from "fast-check";
import { framed } from "./grammar-bodies.ts";
import { blank, bytes, eol, joined, mostly, otherFields, visible, words } from "./grammar-parts.ts";

const method = mostly(
  words("GET|POST|HEAD|OPTIONS|PUT|QUERY|BREW|M-SEARCH|get"),
  words("CONNECT|PRI|SOURCE||G(T|G\0T|é|DESCRIBE"),
);
const path = fc.stringMatching(/^\/[\x21\x22\x24-\x7e]{0,10}$/);
const target = mostly(
  fc.oneof(words("/|/a?b=c|//x/../y?z??|*|http://b.test/x|HTTPS://B.test:81?x|http://[::1]"), path),
  fc.oneof(words("/#a|/\x80|x|/a b|/\t|http://u@b/|http:///x|ftp://a/|b.test:443|http:/a|?a|"), visible),
);
const version = mostly(
  words("HTTP/1.1|HTTP/1.1|HTTP/1.1|HTTP/1.0"),
  words("HTTP/2.0|HTTP/0.9|HTTP/1.2|http/1.1|HTTP/1.01|HTTP/11|ICE/1.0|RTSP/1.0|"),
);
const host = mostly(
  words("Host: a.test|host:a.test:80|HOST: A_b.test|Host: [::1]:1"),
  words("Host:|Host: a.test, b|Host: a.test\r\nHost: a.test|Host: a/b|Host: u@a|Host: a:99999|Host: \xe9|X: y"),
);
function message(firstLine: fc.Arbitrary<string>, firstFields: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc
    .tuple(firstLine, firstFields, otherFields, framed, otherFields, eol)
    .map(
      ([line, first, before, [framing, body], after, end]) => `${line}${first}${before}${framing}${after}${end}${body}`,
    );
}

const request = message(
  joined(mostly(words("||||\r\n"), words("\n|\r| |\r\n\r\n\r\n\r\n\r\n")), method, blank, target, blank, version, eol),
  joined(host, eol),
);
const status = mostly(words("200|200|200|204|304|100|103|101|199|404|999"), words("099|20|2000|2x0||+20"));
const reason = mostly(words("| | OK| Not Found| \xe9\t"), fc.oneof(words("OK| \0| \x7f|\t|  "), joined(" ", bytes)));
const statusLine = joined(
  mostly(fc.constant(""), words("\r\n|\n")),
  mostly(words("HTTP/1.1|HTTP/1.1|HTTP/1.0"), words("HTTP/2.0|HTTP/0.9|HTTP/1.2|ICY|http/1.1")),
  blank,
  status,
  reason,
  eol,
);
const response = message(statusLine, fc.constant(""));

function stream(part: fc.Arbitrary<string>): fc.Arbitrary<Buffer> {
  return fc
    .tuple(fc.array(part, { minLength: 1, maxLength: 3 }), mostly(fc.constant(""), bytes))
    .map(([parts, rest]) => Buffer.from(parts.join("") + rest, "latin1"));
}

export const grammarRequests = stream(request);
export const grammarResponses = stream(response);
