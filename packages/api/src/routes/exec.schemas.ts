/** Shapes of `.../machines/{machine_id}/exec`. */
import { Type } from "typebox";
import { closed } from "../schemas.ts";

export const argument = Type.String({ minLength: 1, maxLength: 32_768, pattern: "^[^\\u0000]*$" });
/** Environment variables in addition to others. */
export const environment = Type.Record(
  Type.String({ pattern: "^[^=\\u0000]+$" }),
  Type.String({ maxLength: 32_768, pattern: "^[^\\u0000]*$" }),
  { ...closed, description: "Environment variables, in addition to the app's." },
);
const user = Type.Optional(Type.String({ maxLength: 256, description: "`user[:group]`. Default: the image's." }));
const workdir = Type.Optional(
  Type.String({ maxLength: 4096, description: "Working directory. Default: the image's." }),
);

export const ExecBody = Type.Object(
  {
    command: Type.Array(argument, {
      minItems: 1,
      maxItems: 256,
      description: "The program, looked up in PATH, and its arguments.",
    }),
    stdin: Type.Optional(Type.String({ description: "The command's entire input. Default: none." })),
    timeout: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 3600,
        description: "Seconds of the machine's own time, which stops while the machine is suspended. Default: 60.",
      }),
    ),
    env: Type.Optional(environment),
    user,
    workdir,
  },
  { ...closed, title: "ExecRequest" },
);

export const ExecReply = Type.Object(
  {
    exit_code: Type.Integer({
      description: "128 plus the number of the signal that ended the command. 126 or 127 when it could not be started.",
    }),
    exit_signal: Type.Integer({ description: "Number of the signal that ended the command, or 0." }),
    stdout: Type.String({ description: "The first MiB of the output." }),
    stderr: Type.String({ description: "The first MiB of the error output." }),
    timed_out: Type.Boolean({ description: "Whether the command was killed because its time was up." }),
    truncated: Type.Boolean({ description: "Whether there was more output than is returned." }),
  },
  { ...closed, title: "ExecResult", description: "How a command ended, and what it printed." },
);

const size = { minimum: 1, maximum: 65_535 };

/** `?command=sh&command=-c&command=...&tty=true` */
export const ExecStreamQuery = Type.Object(
  {
    command: Type.Union([argument, Type.Array(argument, { minItems: 1, maxItems: 256 })], {
      description: "The program, looked up in PATH. Repeat the parameter for each argument.",
    }),
    tty: Type.Optional(Type.Boolean({ description: "Run the command on a terminal. Default: false." })),
    stdin: Type.Optional(
      Type.Boolean({ description: "Whether the command has an input. Default: false, or true with `tty`." }),
    ),
    rows: Type.Optional(Type.Integer({ ...size, description: "Height of the terminal in characters. Default: 24." })),
    columns: Type.Optional(Type.Integer({ ...size, description: "Width of the terminal in characters. Default: 80." })),
    term: Type.Optional(
      Type.String({
        maxLength: 64,
        pattern: "^[\\w.+-]+$",
        description: "The command's TERM. Default: xterm.",
      }),
    ),
    timeout: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 86_400,
        description: "Seconds of the machine's own time. 0: no limit. Default: 0.",
      }),
    ),
    user,
    workdir,
  },
  closed,
);
