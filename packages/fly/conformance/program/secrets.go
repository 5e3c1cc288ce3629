package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	fly "github.com/superfly/fly-go"
)

// secrets leaves two secrets: one that machines find in their environment, and one for a file.
func secrets(r *rig) {
	var version uint64
	r.call("set secret", func(ctx context.Context) (string, error) {
		set, err := r.flaps.SetAppSecret(ctx, r.app, "PASSWORD", "open sesame")
		if err != nil {
			return "", err
		}
		version = set.Version
		return fmt.Sprintf("version %d, digest %s", set.Version, set.Digest), equal("name", set.Name, "PASSWORD")
	})
	r.call("list secrets", func(ctx context.Context) (string, error) {
		all, err := r.flaps.ListAppSecrets(ctx, r.app, nil, false)
		if err != nil || len(all) != 1 {
			return "", errors.Join(err, equal("number of secrets", len(all), 1))
		}
		return "", errors.Join(
			equal("name", all[0].Name, "PASSWORD"),
			equal("digest is there", all[0].Digest != "", true),
			equal("value is hidden", all[0].Value == nil || *all[0].Value == "", true),
		)
	})
	r.call("get secret", func(ctx context.Context) (string, error) {
		one, err := r.flaps.GetAppSecrets(ctx, r.app, "PASSWORD", nil, false)
		if err != nil {
			return "", err
		}
		return "", equal("name", one.Name, "PASSWORD")
	})
	r.call("update secrets: set three", func(ctx context.Context) (string, error) {
		one, two, file := "1", "2", base64.StdEncoding.EncodeToString([]byte("of a secret\n"))
		updated, err := r.flaps.UpdateAppSecrets(ctx, r.app, map[string]*string{"ONE": &one, "TWO": &two, "FILE": &file})
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("version %d", updated.Version), equal("version grows", updated.Version > version, true)
	})
	r.call("update secrets: delete one", func(ctx context.Context) (string, error) {
		_, err := r.flaps.UpdateAppSecrets(ctx, r.app, map[string]*string{"ONE": nil})
		names, otherErr := r.secretNames(ctx)
		return names, errors.Join(err, otherErr, equal("secrets", names, "FILE PASSWORD TWO "))
	})
	r.call("delete secret", func(ctx context.Context) (string, error) {
		_, err := r.flaps.DeleteAppSecret(ctx, r.app, "TWO")
		names, otherErr := r.secretNames(ctx)
		return names, errors.Join(err, otherErr, equal("secrets", names, "FILE PASSWORD "))
	})
	r.refused("get secret that is not there", http.StatusNotFound, "", func(ctx context.Context) error {
		_, err := r.flaps.GetAppSecrets(ctx, r.app, "NONE", nil, false)
		return err
	})
}

func (r *rig) secretNames(ctx context.Context) (names string, err error) {
	var all []fly.AppSecret
	all, err = r.flaps.ListAppSecrets(ctx, r.app, nil, false)
	slices.SortFunc(all, func(a, b fly.AppSecret) int { return strings.Compare(a.Name, b.Name) })
	for _, one := range all {
		names += one.Name + " "
	}
	return names, err
}
