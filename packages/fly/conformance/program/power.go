package main

import (
	"context"
	"errors"

	"github.com/superfly/fly-go/flaps"
)

// power puts the machine to sleep and wakes it, by the API and by a request.
func power(r *rig) {
	if r.machine == nil {
		return
	}
	var born string
	r.call("suspend", func(ctx context.Context) (string, error) {
		var err error
		if born, err = r.birth(ctx, r.app, r.machine.ID); err != nil {
			return "", err
		}
		return born, r.flaps.Suspend(ctx, r.app, r.machine.ID, "")
	})
	r.waits("wait until suspended", "suspended")
	r.call("list by state: suspended", func(ctx context.Context) (string, error) {
		machines, err := r.flaps.List(ctx, r.app, "state=suspended")
		return r.only(machines, 1, err)
	})
	r.call("start: resume", func(ctx context.Context) (string, error) {
		started, err := r.flaps.Start(ctx, r.app, r.machine.ID, "")
		if err != nil {
			return "", err
		}
		return started.Status, equal("previous state", started.PreviousState, "suspended")
	})
	r.waits("wait until started again", "started")
	r.call("it still has its memory", r.sameBirth(&born))
	r.call("suspend again, and wait for any of two states", func(ctx context.Context) (string, error) {
		if err := r.flaps.Suspend(ctx, r.app, r.machine.ID, ""); err != nil {
			return "", err
		}
		return "", r.wait(ctx, r.app, r.machine.ID, flaps.WithWaitStates("suspended", "stopped"))
	})
	r.call("a request at the proxy wakes it, with its memory", r.sameBirth(&born))
	r.call("start what runs", func(ctx context.Context) (string, error) {
		started, err := r.flaps.Start(ctx, r.app, r.machine.ID, "")
		if err != nil {
			return "", err
		}
		machine, err := r.flaps.Get(ctx, r.app, r.machine.ID)
		return started.PreviousState, errors.Join(err, equal("state", machine.State, "started"))
	})
}

// sameBirth asks whether the program in the machine is the one that was born then.
func (r *rig) sameBirth(born *string) func(ctx context.Context) (string, error) {
	return func(ctx context.Context) (string, error) {
		now, err := r.birth(ctx, r.app, r.machine.ID)
		return now, errors.Join(err, equal("birth", now, *born))
	}
}
