/** The shapes of requests for logs. Fields that are not known are ignored. */
import { BUILD_LOG_LEVELS } from "@hibernaut/domain/build";
import { Type } from "typebox";

/** How many entries of a log are told at once. */
const MOST_ENTRIES = 1000;
/** The same of a build's. */
const MOST_BUILD_ENTRIES = 100;
/** Milliseconds since 1970, up to the last that a date can be. */
const Moment = Type.Optional(Type.Integer({ minimum: 0, maximum: 8_640_000_000_000_000 }));
const [DEBUG, INFO, WARN, ERROR] = BUILD_LOG_LEVELS;
const Chosen = {
  cursor: Moment,
  direction: Type.Optional(Type.Union([Type.Literal("forward"), Type.Literal("backward")])),
  level: Type.Optional(Type.Union([Type.Literal(DEBUG), Type.Literal(INFO), Type.Literal(WARN), Type.Literal(ERROR)])),
};
const limit = (most: number) => Type.Integer({ minimum: 0, maximum: most, default: most });

export const FirstLogsQuery = Type.Object({ start: Moment, limit: limit(MOST_ENTRIES) });
export const LogsQuery = Type.Object({
  ...Chosen,
  search: Type.Optional(Type.String({ maxLength: 256 })),
  limit: limit(MOST_ENTRIES),
});
export const BuildLogsQuery = Type.Object({
  ...Chosen,
  source: Type.Optional(Type.Union([Type.Literal("temporary"), Type.Literal("persistent")])),
  limit: limit(MOST_BUILD_ENTRIES),
});
