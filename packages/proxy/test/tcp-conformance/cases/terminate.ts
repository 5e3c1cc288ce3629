/** Real clients of TLS, and what ends their handshakes. */
import { type Case, CLIENT_ENDS } from "../case.ts";

const OLD_CIPHERS = "ALL:@SECLEVEL=0";

export const TERMINATE: readonly Case[] = [
  { name: "a hostname", client: { servername: "a.test" }, ours: "a by a.test TLSv1.3: hello" },
  { name: "another hostname", client: { servername: "b.test" }, ours: "b by b.test TLSv1.3: hello" },
  { name: "a hostname in capitals", client: { servername: "A.TEST" }, ours: "a by a.test TLSv1.3: hello" },
  { name: "a name of a wildcard", client: { servername: "x.wild.test" }, ours: "a by *.wild.test TLSv1.3: hello" },
  { name: "a name two levels below it", client: { servername: "x.y.wild.test" }, ours: "alert 112" },
  {
    name: "TLS 1.2",
    client: { servername: "a.test", maxVersion: "TLSv1.2" },
    ours: "a by a.test TLSv1.2: hello",
  },
  {
    name: "TLS 1.1",
    client: { servername: "a.test", minVersion: "TLSv1", maxVersion: "TLSv1.1", ciphers: OLD_CIPHERS },
    ours: "alert 70",
  },
  {
    name: "no common cipher",
    client: { servername: "a.test", maxVersion: "TLSv1.2", ciphers: "AES128-SHA" },
    ours: "alert 40",
  },
  {
    name: "protocols that the port does not choose among",
    client: { servername: "a.test", ALPNProtocols: ["h2", "http/1.1"] },
    ours: "a by a.test TLSv1.3: hello",
  },
  { name: "a hostname that nobody has", client: { servername: "c.test" }, ours: "alert 112" },
  {
    name: "no hostname",
    client: {},
    ours: "alert 109",
    differs: "says that it does not know the name; RFC 8446 9.2 has an alert for this",
  },
  {
    name: "HTTP",
    client: ["GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"],
    ours: "alert 70",
    differs: "closes without a word",
  },
  { name: "nothing, in time", client: [], ours: "closed" },
  { name: "half a message and the end", client: [Buffer.from([22, 3, 1, 1, 0, 1, 0]), CLIENT_ENDS], ours: "closed" },
];
