package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/superfly/fly-go/flaps"
)

// Requests that come at the same moment.
const visitors = 2

// sleepAndWake finds the machine of a user in the list, wakes it by requests and by the API at the same moment, and puts it back to
// sleep. Every third user's machine is left to a request alone, and every third to the API alone.
func (r *rig) sleepAndWake(ctx context.Context, one *user) error {
	machines, err := r.flaps.List(ctx, r.app, "metadata.user="+strconv.Itoa(one.number))
	if err != nil {
		return err
	}
	if len(machines) != 1 || machines[0].ID != one.id {
		return fmt.Errorf("the list has %d machines for user %d, whose machine is %s", len(machines), one.number, one.id)
	}
	answers := make(chan error, visitors+1)
	asked := 0
	if one.number%3 != 0 {
		for range visitors {
			asked++
			go func() { answers <- r.stillOwn(ctx, one) }()
		}
	}
	if one.number%3 != 1 {
		asked++
		go func() { answers <- r.startAndGet(ctx, one) }()
	}
	for range asked {
		err = errors.Join(err, <-answers)
	}
	if err != nil {
		return err
	}
	return errors.Join(r.stillOwn(ctx, one), r.sleep(ctx, one))
}

func (r *rig) startAndGet(ctx context.Context, one *user) error {
	if _, err := r.flaps.Start(ctx, r.app, one.id, ""); err != nil {
		return err
	}
	if err := r.wait(ctx, r.app, one.id, flaps.WithWaitStates("started")); err != nil {
		return err
	}
	machine, err := r.flaps.Get(ctx, r.app, one.id)
	if err != nil {
		return err
	}
	return errors.Join(equal("ID", machine.ID, one.id), equal("user", machine.Config.Metadata["user"], strconv.Itoa(one.number)))
}

// stillOwn asks the machine itself whose it is, and since when.
func (r *rig) stillOwn(ctx context.Context, one *user) error {
	env, err := r.environment(ctx, r.app, one.id)
	if err != nil {
		return err
	}
	born, err := r.birth(ctx, r.app, one.id)
	return errors.Join(err, equal("user", env["USER_NUMBER"], strconv.Itoa(one.number)), equal("birth", born, one.born))
}
