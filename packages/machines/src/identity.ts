/** Names and numbers of machines. */
import { randomBytes, randomInt } from "node:crypto";

const CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const ADJECTIVES = "calm drowsy gentle hushed idle lazy mellow quiet restful silent sleepy still".split(" ");
const ANIMALS = "badger bat bear chipmunk dormouse frog hedgehog ladybird marmot newt skunk turtle".split(" ");

/** 14 hex digits, random. */
export function newMachineId(): string {
  return randomBytes(7).toString("hex");
}

/**
 * A name for people who did not choose one, e.g. `drowsy-marmot-482137`: of 130 million, so that an app of thousands of machines does not
 * see one twice.
 */
export function newMachineName(): string {
  return `${ADJECTIVES[randomInt(ADJECTIVES.length)]}-${ANIMALS[randomInt(ANIMALS.length)]}-${randomInt(100_000, 1_000_000)}`;
}

/** A ULID (https://github.com/ulid/spec): 48 bits of milliseconds and 80 random bits, 26 characters, sortable by time. */
export function newUlid(now: number = Date.now()): string {
  let value = (BigInt(now) << 80n) | BigInt(`0x${randomBytes(10).toString("hex")}`);
  let text = "";
  for (let digit = 0; digit < 26; digit += 1) {
    text = CROCKFORD[Number(value & 31n)] + text;
    value >>= 5n;
  }
  return text;
}

/** Returns when a ULID was made, in milliseconds since 1970. */
export function ulidMs(ulid: string): number {
  return ulid
    .slice(0, 10)
    .split("")
    .reduce((ms, digit) => ms * 32 + CROCKFORD.indexOf(digit), 0);
}
