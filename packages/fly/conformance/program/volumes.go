package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	fly "github.com/superfly/fly-go"
)

// volumes makes the volume that a machine gets later.
func volumes(r *rig) {
	size, retention, region := 1, 7, ""
	if !r.call("create volume", func(ctx context.Context) (string, error) {
		volume, err := r.flaps.CreateVolume(ctx, r.app, fly.CreateVolumeRequest{Name: "data", Region: region, SizeGb: &size})
		if err != nil {
			return "", err
		}
		r.volume = volume
		return fmt.Sprintf("%+v", *volume), errors.Join(
			equal("name", volume.Name, "data"),
			equal("size", volume.SizeGb, 1),
			equal("it is attached", volume.IsAttached(), false),
			equal("time is there", volume.CreatedAt.IsZero(), false),
		)
	}) {
		return
	}
	r.call("list volumes", func(ctx context.Context) (string, error) {
		all, err := r.flaps.GetVolumes(ctx, r.app)
		if err != nil || len(all) != 1 {
			return "", errors.Join(err, equal("number of volumes", len(all), 1))
		}
		return all[0].State, equal("ID", all[0].ID, r.volume.ID)
	})
	r.call("get volume", func(ctx context.Context) (string, error) {
		volume, err := r.flaps.GetVolume(ctx, r.app, r.volume.ID)
		if err != nil {
			return "", err
		}
		return volume.State, equal("state", volume.State, "created")
	})
	r.call("update volume", func(ctx context.Context) (string, error) {
		request := fly.UpdateVolumeRequest{SnapshotRetention: &retention}
		volume, err := r.flaps.UpdateVolume(ctx, r.app, r.volume.ID, request)
		if err != nil {
			return "", err
		}
		return "", equal("retention", volume.SnapshotRetention, retention)
	})
	r.call("extend volume", func(ctx context.Context) (string, error) {
		volume, restart, err := r.flaps.ExtendVolume(ctx, r.app, r.volume.ID, 2)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("needs restart: %t", restart), equal("size", volume.SizeGb, 2)
	})
	r.call("create snapshot of volume", func(ctx context.Context) (string, error) {
		return "", r.flaps.CreateVolumeSnapshot(ctx, r.app, r.volume.ID)
	})
	r.call("list snapshots of volume", func(ctx context.Context) (string, error) {
		all, err := r.flaps.GetVolumeSnapshots(ctx, r.app, r.volume.ID)
		if err != nil || len(all) == 0 {
			return "", errors.Join(err, equal("number of snapshots", len(all), 1))
		}
		return fmt.Sprintf("%+v", all[0]), equal("time is there", all[0].CreatedAt.IsZero(), false)
	})
	r.refused("get volume that is not there", http.StatusNotFound, "volume not found", func(ctx context.Context) error {
		_, err := r.flaps.GetVolume(ctx, r.app, "vol_000000000000000")
		return err
	})
}
