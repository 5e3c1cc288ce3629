package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	fly "github.com/superfly/fly-go"
	"github.com/superfly/fly-go/flaps"
	"github.com/superfly/fly-go/tokens"
)

// How long one call may take, with what it waits for. Emulated machines start in seconds, and wait for each other.
const callTimeout = 4 * time.Minute

// Names of apps are unique on a platform, so each run has its own.
var suffix = fmt.Sprintf("%x", time.Now().UnixMilli()%0xffffff)

// What the calls share.
type rig struct {
	ctx      context.Context
	settings settings
	report   *report
	flaps    *flaps.Client
	web      *fly.Client
	wire     *wire
	proxy    *http.Client
	app      string

	// What earlier groups made; nil if that failed.
	machine *fly.Machine
	volume  *fly.Volume
}

func openRig(ctx context.Context, s settings) (*rig, error) {
	for name, value := range map[string]string{
		"FLY_FLAPS_BASE_URL": s.machines, "FLY_API_TOKEN": s.token, "HIBERNAUT_IMAGE": s.image, "HIBERNAUT_PROXY_URL": s.proxy,
	} {
		if value == "" {
			return nil, fmt.Errorf("%s is not set", name)
		}
	}
	w := &wire{under: http.DefaultTransport}
	client, err := clientWith(ctx, s.token, w)
	if err != nil {
		return nil, err
	}
	web := fly.NewClientFromOptions(fly.ClientOptions{
		Tokens: tokens.Parse(s.token), Name: "conformance", Version: "0.0.0", BaseURL: s.graph,
		Transport: &fly.Transport{UnderlyingTransport: w},
	})
	return &rig{
		ctx: ctx, settings: s, report: newReport(), flaps: client, web: web, wire: w,
		// Each request is a connection of its own: what a machine lets go of must not be taken for an answer.
		proxy: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: callTimeout},
		app:   "fly-" + suffix,
	}, nil
}

// clientWith makes Fly's client with that token. It takes the address from the environment.
func clientWith(ctx context.Context, token string, transport http.RoundTripper) (*flaps.Client, error) {
	return flaps.NewWithOptions(ctx, flaps.NewClientOpts{Tokens: tokens.Parse(token), Transport: transport})
}

// call makes one call, and reports it. Returns whether it did what it should.
func (r *rig) call(name string, do func(ctx context.Context) (string, error)) bool {
	ctx, cancel := context.WithTimeout(r.ctx, callTimeout)
	defer cancel()
	return r.report.call(name, func() (string, error) { return do(ctx) })
}

// refused makes a call that must be refused with that status, and with a sentence that has that phrase.
func (r *rig) refused(name string, status int, phrase string, do func(ctx context.Context) error) bool {
	return r.call(name, func(ctx context.Context) (string, error) {
		return isRefusal(do(ctx), status, phrase)
	})
}

// isRefusal tells whether the client recognizes the error by its status and phrase. A status of 4 means any of 400 to 499.
func isRefusal(err error, status int, phrase string) (string, error) {
	var refusal *flaps.FlapsError
	switch {
	case err == nil:
		return "", errors.New("it was not refused")
	case !errors.As(err, &refusal):
		return "", fmt.Errorf("the client does not see a refusal of the API in it: %w", err)
	case refusal.ResponseStatusCode != status && refusal.ResponseStatusCode/100 != status:
		return "", fmt.Errorf("status %d instead of %d: %s", refusal.ResponseStatusCode, status, refusal.ResponseBody)
	case !strings.Contains(err.Error(), phrase):
		return "", fmt.Errorf("without %q: %w", phrase, err)
	case refusal.FlyRequestId == "":
		return "", errors.New("without the ID of the request")
	}
	return err.Error(), nil
}

// wait waits until a machine is in one of these states, as Fly's programs do: one that is not there in time is asked about again.
func (r *rig) wait(ctx context.Context, app, id string, options ...flaps.WaitOption) error {
	for {
		err := r.flaps.Wait(ctx, app, id, options...)
		var refusal *flaps.FlapsError
		if !errors.As(err, &refusal) || refusal.ResponseStatusCode != http.StatusRequestTimeout || ctx.Err() != nil {
			return err
		}
	}
}

// waits reports a call that waits for that state of the machine of most calls.
func (r *rig) waits(name, state string) bool {
	return r.call(name, func(ctx context.Context) (string, error) {
		return "", r.wait(ctx, r.app, r.machine.ID, flaps.WithWaitStates(state))
	})
}
