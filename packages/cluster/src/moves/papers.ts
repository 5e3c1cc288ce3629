/** What hosts tell each other about a machine that moves. */
import type { MachineEvent } from "@hibernaut/domain/machine";
import type { Papers } from "@hibernaut/machines";
import type { VolumePapers } from "@hibernaut/volumes";

/** The papers of a machine that travels. */
export interface TravelPapers extends Papers {
  from: string;
  epoch: number;
  /** Of the {@link MoveRecord}. */
  attempt: string;
  history: MachineEvent[];
  volumes: VolumePapers[];
}

/** What the other host is asked before anything is copied. */
export interface FitPapers extends Papers {
  volumes: VolumePapers[];
}

/** Why a machine cannot go there, or its volumes cannot. Nothing when they can. */
export interface Fit {
  unfit?: string;
  unfitVolumes?: string;
}
