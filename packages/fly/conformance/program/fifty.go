package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	fly "github.com/superfly/fly-go"
	"github.com/superfly/fly-go/flaps"
)

// One user, with a machine of their own.
type user struct {
	number int
	id     string
	// Of the program in the machine: it must never be born again.
	born string
}

// fifty has a machine for each of many users. All are put to sleep and asked for by the API, while requests at the proxy wake them.
// None may be taken for another, lost, or started again.
func fifty(r *rig) {
	r.app = "fifty-" + suffix
	if !r.call("create app", func(ctx context.Context) (string, error) {
		_, err := r.flaps.CreateApp(ctx, flaps.CreateAppRequest{Name: r.app, Org: "personal"})
		return "", err
	}) {
		return
	}
	users := make([]*user, r.settings.machineCount)
	for at := range users {
		users[at] = &user{number: at + 1}
	}
	r.each(users, "machine of", r.makeFor)
	for round := 1; round <= r.settings.rounds; round++ {
		r.each(users, fmt.Sprintf("round %d:", round), r.sleepAndWake)
	}
	r.call("all machines are there", func(ctx context.Context) (string, error) { return r.allThere(ctx, users) })
	r.each(users, "at the end:", r.stillOwn)
	r.each(users, "destroy:", func(ctx context.Context, one *user) error {
		err := r.flaps.Destroy(ctx, r.app, fly.RemoveMachineInput{ID: one.id, Kill: true}, "")
		return errors.Join(err, r.isDestroyed(ctx, one.id))
	})
	r.call("delete app", func(ctx context.Context) (string, error) {
		return "", r.flaps.DeleteApp(ctx, r.app)
	})
}

// each does that for all users, at most for as many at a time as machines may be awake.
func (r *rig) each(users []*user, name string, do func(ctx context.Context, one *user) error) {
	places := make(chan struct{}, r.settings.awake)
	var all sync.WaitGroup
	for _, one := range users {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			r.call(fmt.Sprintf("%s user %d", name, one.number), func(ctx context.Context) (string, error) {
				return one.id, do(ctx, one)
			})
		})
	}
	all.Wait()
}

// makeFor makes the machine of a user, and puts it to sleep as soon as it has answered.
func (r *rig) makeFor(ctx context.Context, one *user) error {
	suspend, yes := fly.MachineAutostopSuspend, true
	port := 80
	config := r.plainConfig(map[string]string{"USER_NUMBER": strconv.Itoa(one.number)})
	config.Guest.MemoryMB = r.settings.memoryMB
	config.Metadata = map[string]string{"user": strconv.Itoa(one.number)}
	config.Services = []fly.MachineService{{
		Protocol: "tcp", InternalPort: appPort, Autostop: &suspend, Autostart: &yes,
		Ports: []fly.MachinePort{{Port: &port, Handlers: []string{"http"}}},
	}}
	machine, err := r.flaps.Launch(ctx, r.app, fly.LaunchMachineInput{Name: fmt.Sprintf("user-%d", one.number), Config: config})
	if err != nil {
		return err
	}
	one.id = machine.ID
	if err := r.wait(ctx, r.app, one.id, flaps.WithWaitStates("started")); err != nil {
		return err
	}
	if one.born, err = r.birth(ctx, r.app, one.id); err != nil {
		return err
	}
	return r.sleep(ctx, one)
}

func (r *rig) sleep(ctx context.Context, one *user) error {
	if err := r.flaps.Suspend(ctx, r.app, one.id, ""); err != nil {
		return err
	}
	return r.wait(ctx, r.app, one.id, flaps.WithWaitStates("suspended"))
}

// allThere compares the list with what was made.
func (r *rig) allThere(ctx context.Context, users []*user) (string, error) {
	machines, err := r.flaps.List(ctx, r.app, "")
	if err != nil {
		return "", err
	}
	owner := map[string]string{}
	for _, machine := range machines {
		owner[machine.ID] = machine.Config.Metadata["user"]
	}
	faults := []error{equal("number of machines", len(machines), len(users))}
	for _, one := range users {
		faults = append(faults, equal("user of "+one.id, owner[one.id], strconv.Itoa(one.number)))
	}
	return fmt.Sprintf("%d machines", len(machines)), errors.Join(faults...)
}
