package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	fly "github.com/superfly/fly-go"
)

// lists asks for machines by what they are.
func lists(r *rig) {
	if r.machine == nil {
		return
	}
	for _, each := range []struct {
		name, filter string
		count        int
	}{
		{"list machines", "", 1},
		{"list by state: started", "state=started", 1},
		{"list by state: stopped", "state=stopped", 0},
		{"list by metadata: that user", "metadata.user=7", 1},
		{"list by metadata: another user", "metadata.user=8", 0},
		{"list, with those that are deleted", "include_deleted=true", 1},
	} {
		r.call(each.name, func(ctx context.Context) (string, error) {
			machines, err := r.flaps.List(ctx, r.app, each.filter)
			return r.only(machines, each.count, err)
		})
	}
	r.call("list active machines", func(ctx context.Context) (string, error) {
		machines, err := r.flaps.ListActive(ctx, r.app)
		return r.only(machines, 1, err)
	})
	r.call("list machines in short", func(ctx context.Context) (string, error) {
		var machines []*fly.Machine
		_, err := r.rest(ctx, http.MethodGet, fmt.Sprintf("/apps/%s/machines?summary=true", r.app), nil, &machines)
		return r.only(machines, 1, err)
	})
	r.call("get many machines", func(ctx context.Context) (string, error) {
		machines, err := r.flaps.GetMany(ctx, r.app, []string{r.machine.ID})
		return r.only(machines, 1, err)
	})
}

// only is an error unless there are that many machines, all of them the one of most calls.
func (r *rig) only(machines []*fly.Machine, count int, err error) (string, error) {
	if err != nil || len(machines) != count {
		return "", errors.Join(err, equal("number of machines", len(machines), count))
	}
	for _, machine := range machines {
		if err := equal("ID", machine.ID, r.machine.ID); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%d machines", count), nil
}
