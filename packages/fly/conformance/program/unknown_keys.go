package main

import (
	"context"
	"errors"
	"net/http"
)

// unknownKeys are those that the client has no field for: written by newer programs, and by clients of other languages.
func unknownKeys(r *rig) {
	if r.machine == nil {
		return
	}
	var document struct {
		Config map[string]any `json:"config"`
	}
	unknown := map[string]any{"deep": []any{map[string]any{"a": 1.0}, "two", false}, "text": "ü"}
	r.call("update with a key that nobody knows", func(ctx context.Context) (string, error) {
		if _, err := r.rest(ctx, http.MethodGet, r.path(""), nil, &document); err != nil {
			return "", err
		}
		document.Config["of_the_future"] = unknown
		if _, err := r.rest(ctx, http.MethodPost, r.path(""), document, nil); err != nil {
			return "", err
		}
		return "", r.kept()
	})
	r.call("the key is still there", func(ctx context.Context) (string, error) {
		sent := document.Config
		document.Config = nil
		_, err := r.rest(ctx, http.MethodGet, r.path(""), nil, &document)
		return "", errors.Join(err, keptAll(sent, document.Config))
	})
}
