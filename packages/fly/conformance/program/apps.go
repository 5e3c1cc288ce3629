package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	fly "github.com/superfly/fly-go"
	"github.com/superfly/fly-go/flaps"
)

// apps makes the app that the others use, and looks at it in all ways.
func apps(r *rig) {
	request := flaps.CreateAppRequest{Name: r.app, Org: "personal"}
	r.call("create app", func(ctx context.Context) (string, error) {
		app, err := r.flaps.CreateApp(ctx, request)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%+v", *app), equal("name", app.Name, r.app)
	})
	r.call("create app again: its name is taken", func(ctx context.Context) (string, error) {
		_, err := r.flaps.CreateApp(ctx, request)
		if !flaps.IsNameTakenError(err) {
			return "", fmt.Errorf("not recognized as a taken name: %w", err)
		}
		return err.Error(), nil
	})
	r.call("name of an app is available", func(ctx context.Context) (string, error) {
		taken, err := r.flaps.AppNameAvailable(ctx, r.app)
		free, otherErr := r.flaps.AppNameAvailable(ctx, r.app+"-free")
		return "", errors.Join(err, otherErr, equal("own", taken, false), equal("other", free, true))
	})
	r.call("wait for app", func(ctx context.Context) (string, error) {
		return "", r.flaps.WaitForApp(ctx, r.app)
	})
	r.call("get app", func(ctx context.Context) (string, error) {
		app, err := r.flaps.GetApp(ctx, r.app)
		if err != nil {
			return "", err
		}
		return app.Status, errors.Join(equal("name", app.Name, r.app), equal("ID is there", app.ID != "", true))
	})
	r.call("list apps", func(ctx context.Context) (string, error) {
		all, err := r.flaps.ListApps(ctx, flaps.ListAppsRequest{OrgSlug: "personal"})
		for _, app := range all {
			if app.Name == r.app {
				return fmt.Sprintf("%d apps", len(all)), err
			}
		}
		return "", errors.Join(err, fmt.Errorf("%s is not among %d apps", r.app, len(all)))
	})
	graph(r)
	r.call("regions", func(ctx context.Context) (string, error) {
		data, err := r.flaps.GetRegions(ctx)
		if err != nil {
			return "", err
		}
		if len(data.Regions) == 0 || data.Regions[0].Code == "" {
			return "", errors.New("there is no region")
		}
		return data.Regions[0].Code, equal("nearest", data.Nearest != "", true)
	})
}

// graph asks what flyctl asks by GraphQL before nearly every command.
func graph(r *rig) {
	r.call("app by GraphQL", func(ctx context.Context) (string, error) {
		app, err := r.web.GetAppCompact(ctx, r.app)
		if err != nil {
			return "", err
		}
		detail := fmt.Sprintf("%+v, organization %+v", *app, app.Organization)
		return detail, errors.Join(
			equal("name", app.Name, r.app),
			equal("ID is there", app.ID != "", true),
			equal("organization is there", app.Organization != nil && app.Organization.Slug != "", true),
			equal("platform version", app.PlatformVersion, "machines"),
		)
	})
	r.call("app by GraphQL that is not there", func(ctx context.Context) (string, error) {
		_, err := r.web.GetAppCompact(ctx, r.app+"-none")
		if err == nil || !strings.Contains(err.Error(), "Could not find App") {
			return "", fmt.Errorf("not the sentence that flyctl looks for: %w", err)
		}
		return "", nil
	})
	r.call("basic app by GraphQL", func(ctx context.Context) (string, error) {
		var app *fly.AppBasic
		app, err := r.web.GetAppBasic(ctx, r.app)
		if err != nil {
			return "", err
		}
		return "", equal("name", app.Name, r.app)
	})
}

// equal is an error unless both are the same.
func equal[T comparable](what string, found, expected T) error {
	if found != expected {
		return fmt.Errorf("%s is %v instead of %v", what, found, expected)
	}
	return nil
}
