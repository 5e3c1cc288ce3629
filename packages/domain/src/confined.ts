/** Programs that work for the platform on what others sent, and should have no rights but those for their work. */

export interface ConfinedTask {
  /** Names the work among others that run. */
  name: string;
  /** A directory for the jail, which the caller deletes. */
  folder: string;
  /** Absolute path of the program. */
  program: string;
  args: readonly string[];
  /** Files and directories that it may read, besides programs and libraries of the host. */
  read: readonly string[];
  /** Files that it may write. They exist. */
  write: readonly string[];
  /** How large a file that it writes may become. */
  fileBytes: number;
}

/** What to start instead. */
export interface Confined {
  program: string;
  args: readonly string[];
  /** Call it when the program has ended: the files are the platform's again. */
  end(): Promise<void>;
}

/** Makes a jail for a program. */
export type Confine = (task: ConfinedTask) => Promise<Confined>;
