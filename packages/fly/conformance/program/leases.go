package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	fly "github.com/superfly/fly-go"
)

// Refusals of what needs the nonce have this in their sentence; flyctl looks for it.
const heldBy = "lease currently held by"

// How long a lease is taken for, in seconds, and how long the second client waits for it.
const (
	leaseSeconds = 60
	leasePause   = 1500 * time.Millisecond
)

// leases keep others from changing a machine.
func leases(r *rig) {
	if r.machine == nil {
		return
	}
	var nonce string
	ttl, longer := leaseSeconds, 2*leaseSeconds
	r.call("acquire lease", func(ctx context.Context) (string, error) {
		lease, err := r.flaps.AcquireLease(ctx, r.app, r.machine.ID, &ttl)
		if err != nil {
			return "", err
		}
		nonce = lease.Data.Nonce
		left := time.Until(time.Unix(lease.Data.ExpiresAt, 0)).Seconds()
		return fmt.Sprintf("%+v", *lease.Data), errors.Join(equal("status", lease.Status, "success"), equal("nonce is there", nonce != "", true),
			equal("time is right", left > 0 && left <= leaseSeconds+1, true))
	})
	r.call("find lease", func(ctx context.Context) (string, error) {
		lease, err := r.flaps.FindLease(ctx, r.app, r.machine.ID)
		if err != nil {
			return "", err
		}
		return lease.Data.Owner, equal("status", lease.Status, "success")
	})
	r.refused("acquire lease again", http.StatusConflict, heldBy, func(ctx context.Context) error {
		// The client's call for it tries again for a minute; the one for renewals asks once, here with a nonce of nobody.
		_, err := r.flaps.RefreshLease(ctx, r.app, r.machine.ID, &ttl, "0123456789ab")
		return err
	})
	r.refused("stop without the nonce", http.StatusConflict, heldBy, func(ctx context.Context) error {
		return r.flaps.Stop(ctx, r.app, fly.StopMachineInput{ID: r.machine.ID}, "")
	})
	r.refused("update without the nonce", http.StatusConflict, heldBy, func(ctx context.Context) error {
		_, err := r.flaps.Update(ctx, r.app, fly.LaunchMachineInput{ID: r.machine.ID, Config: r.fullConfig()}, "")
		return err
	})
	r.refused("destroy with another nonce", http.StatusConflict, heldBy, func(ctx context.Context) error {
		return r.flaps.Destroy(ctx, r.app, fly.RemoveMachineInput{ID: r.machine.ID, Kill: true}, "0123456789ab")
	})
	r.call("cordon with the nonce", func(ctx context.Context) (string, error) {
		return "", errors.Join(r.flaps.Cordon(ctx, r.app, r.machine.ID, nonce), r.flaps.Uncordon(ctx, r.app, r.machine.ID, nonce))
	})
	r.call("refresh lease", func(ctx context.Context) (string, error) {
		lease, err := r.flaps.RefreshLease(ctx, r.app, r.machine.ID, &longer, nonce)
		if err != nil {
			return "", err
		}
		left := time.Until(time.Unix(lease.Data.ExpiresAt, 0)).Seconds()
		return "", errors.Join(equal("nonce", lease.Data.Nonce, nonce), equal("it is longer", left > leaseSeconds, true))
	})
	r.call("a second client gets the lease as soon as the first lets go", func(ctx context.Context) (string, error) {
		released := make(chan error, 1)
		time.AfterFunc(leasePause, func() { released <- r.flaps.ReleaseLease(ctx, r.app, r.machine.ID, nonce) })
		began := time.Now()
		lease, err := r.flaps.AcquireLease(ctx, r.app, r.machine.ID, &ttl)
		if err := errors.Join(err, <-released); err != nil {
			return "", err
		}
		first := nonce
		nonce = lease.Data.Nonce
		return "", errors.Join(equal("it waited", time.Since(began) >= leasePause, true), equal("nonce is another", nonce != first, true))
	})
	r.call("release lease", func(ctx context.Context) (string, error) {
		return "", r.flaps.ReleaseLease(ctx, r.app, r.machine.ID, nonce)
	})
	r.refused("find lease that is not there", http.StatusNotFound, " lease not found", func(ctx context.Context) error {
		_, err := r.flaps.FindLease(ctx, r.app, r.machine.ID)
		return err
	})
}
