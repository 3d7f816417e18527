package bootstrap

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cozystack/cozydev/operator/apply"
)

//go:embed flux/flux.yaml
var fluxManifest []byte

// FluxObjects returns the objects of the Flux distribution in the order to apply them.
func FluxObjects() ([]*unstructured.Unstructured, error) {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(fluxManifest), 4096)
	var objects []*unstructured.Unstructured
	for {
		object := &unstructured.Unstructured{}
		switch err := decoder.Decode(object); {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, fmt.Errorf("decoding the embedded Flux manifest: %w", err)
		case len(object.Object) > 0:
			objects = append(objects, object)
		}
	}
}

func installFlux(ctx context.Context, c client.Client) error {
	objects, err := FluxObjects()
	if err != nil {
		return err
	}
	for _, object := range objects {
		if err := apply.Object(ctx, c, object); err != nil {
			return fmt.Errorf("applying %s %q: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}
