package main

import (
	"context"
	"errors"
	"net/http"

	"github.com/superfly/fly-go/flaps"
)

// strangers ask without the right to.
func strangers(r *rig) {
	if r.machine == nil {
		return
	}
	r.refused("get machine of another app", http.StatusNotFound, "", func(ctx context.Context) error {
		_, err := r.flaps.Get(ctx, r.app+"-none", r.machine.ID)
		return err
	})
	for name, token := range map[string]string{"a wrong token": "wrong", "a macaroon of Fly": "fm2_bm90IG91cnM="} {
		r.refused("list machines with "+name, http.StatusUnauthorized, "", func(ctx context.Context) error {
			client, err := clientWith(ctx, token, r.wire)
			if err != nil {
				return err
			}
			_, err = client.List(ctx, r.app, "")
			return err
		})
	}
	r.call("certificates", func(ctx context.Context) (string, error) {
		all, err := r.flaps.ListCertificates(ctx, r.app, &flaps.ListCertificatesOpts{Limit: 10})
		if err != nil {
			return "", err
		}
		return "", equal("number of certificates", len(all.Certificates), 0)
	})
	r.call("addresses", func(ctx context.Context) (string, error) {
		all, err := r.flaps.GetIPAssignments(ctx, r.app)
		if err != nil {
			return "", err
		}
		return "", equal("there is an answer", all != nil, true)
	})
	r.refused("get machine that is not there", http.StatusNotFound, "machine not found", func(ctx context.Context) error {
		_, err := r.flaps.Get(ctx, r.app, "00000000000000")
		if !errors.Is(err, flaps.ErrFlapsNotFound) {
			return errors.Join(errors.New("not what the client calls not found"), err)
		}
		return err
	})
}
