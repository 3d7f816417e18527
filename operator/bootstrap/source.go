package bootstrap

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cozystack/cozydev/operator/apply"
)

// Source is where the package tree of the platform comes from.
type Source struct {
	// Kind of the Flux object: OCIRepository or GitRepository.
	Kind string
	// Name of the Flux object and of nothing else.
	Name string
	// URL as Flux takes it.
	URL string
	// Ref chooses the revision: OCI knows digest, tag, semver and semverFilter, Git branch, tag, semver, name and
	// commit. Empty takes Flux's default.
	Ref map[string]string
	// Secret with the credentials, in the same namespace; empty for none.
	Secret string
	// Insecure allows an OCI registry without TLS.
	Insecure bool
}

// SourceFlags are the texts that a Source is parsed from.
type SourceFlags struct {
	Name, URL, Ref, Secret string
	Insecure               bool
}

var (
	ociRefKeys = []string{"digest", "semver", "semverFilter", "tag"}
	gitRefKeys = []string{"branch", "commit", "name", "semver", "tag"}

	objectName  = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)
	digestValue = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
	tagValue    = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)
	commitValue = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)
)

// ParseSource checks the flags and returns the source they describe, or nil when there is no URL.
func ParseSource(flags SourceFlags) (*Source, error) {
	if flags.URL == "" {
		if flags.Ref != "" {
			return nil, fmt.Errorf("platform source reference %q has no URL to belong to: set --platform-source-url", flags.Ref)
		}
		return nil, nil
	}
	if !objectName.MatchString(flags.Name) {
		return nil, fmt.Errorf("platform source name %q: use lower-case letters, digits and dashes", flags.Name)
	}
	kind, err := sourceKind(flags.URL)
	if err != nil {
		return nil, err
	}
	if flags.Insecure && kind != sourcev1.OCIRepositoryKind {
		return nil, fmt.Errorf("platform source URL %q: --platform-source-insecure is for oci:// only", flags.URL)
	}
	ref, err := parseRef(flags.Ref, kind)
	if err != nil {
		return nil, fmt.Errorf("platform source reference %q: %w", flags.Ref, err)
	}
	return &Source{
		Kind: kind, Name: flags.Name, URL: flags.URL, Ref: ref, Secret: flags.Secret, Insecure: flags.Insecure,
	}, nil
}

// sourceKind checks the URL and returns the kind of Flux object that fetches it.
func sourceKind(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil {
		return "", fmt.Errorf("platform source URL %q is not a URL: use oci://, https://, http:// or ssh://", text)
	}
	if u.Host == "" || strings.Trim(u.Path, "/") == "" {
		return "", fmt.Errorf("platform source URL %q: a host and a path are needed, as in oci://ghcr.io/owner/packages", text)
	}
	switch u.Scheme {
	case "oci":
		if strings.ContainsAny(u.Path, ":@") {
			return "", fmt.Errorf("platform source URL %q holds a tag or digest: give it as --platform-source-ref tag=…", text)
		}
		return sourcev1.OCIRepositoryKind, nil
	case "http", "https", "ssh":
		return sourcev1.GitRepositoryKind, nil
	default:
		return "", fmt.Errorf("platform source URL %q: scheme %q is not supported: use oci://, https://, http:// or ssh://",
			text, u.Scheme)
	}
}

// parseRef reads key=value pairs, comma-separated. A semver range may hold commas: what follows a comma and has no
// key of its own belongs to the value before it.
func parseRef(text, kind string) (map[string]string, error) {
	known := gitRefKeys
	if kind == sourcev1.OCIRepositoryKind {
		known = ociRefKeys
	}
	ref := map[string]string{}
	var last string
	for _, part := range strings.Split(text, ",") {
		if text == "" {
			break
		}
		key, value, found := strings.Cut(part, "=")
		key = strings.TrimSpace(key)
		switch {
		case found && slices.Contains(known, key):
			if _, twice := ref[key]; twice {
				return nil, fmt.Errorf("%q is given twice", key)
			}
			ref[key], last = strings.TrimSpace(value), key
		case isRange(last):
			ref[last] += "," + part
		case found:
			return nil, fmt.Errorf("%s has no %q: use %s", kind, key, strings.Join(known, ", "))
		default:
			return nil, fmt.Errorf("%q is not key=value: use one of %s as key", part, strings.Join(known, ", "))
		}
	}
	return ref, checkRef(ref, kind)
}

func isRange(key string) bool { return key == "semver" || key == "semverFilter" }

func checkRef(ref map[string]string, kind string) error {
	for _, key := range slices.Sorted(maps.Keys(ref)) {
		if ref[key] == "" {
			return fmt.Errorf("%q has no value", key)
		}
		if err := checkRefValue(key, ref[key], kind); err != nil {
			return err
		}
	}
	if ref["semverFilter"] != "" && ref["semver"] == "" {
		return fmt.Errorf(`"semverFilter" needs "semver" beside it`)
	}
	return nil
}

func checkRefValue(key, value, kind string) error {
	switch {
	case key == "digest" && !digestValue.MatchString(value):
		return fmt.Errorf("digest %q is not sha256: and 64 hexadecimal digits", value)
	case key == "commit" && !commitValue.MatchString(value):
		return fmt.Errorf("commit %q is not a full hash of 40 or 64 hexadecimal digits", value)
	case key == "tag" && kind == sourcev1.OCIRepositoryKind && !tagValue.MatchString(value):
		return fmt.Errorf("tag %q is not a tag that a registry takes", value)
	}
	var err error
	switch key {
	case "semver":
		_, err = semver.NewConstraint(value)
	case "semverFilter":
		_, err = regexp.Compile(value)
	}
	if err != nil {
		return fmt.Errorf("%s %q: %w", key, value, err)
	}
	return nil
}

// applySource writes the Flux source and the PackageSource of the platform chart that lies in it.
func applySource(ctx context.Context, c client.Client, opts Options) error {
	for _, obj := range []client.Object{sourceObject(*opts.Source, opts.Namespace), platform(*opts.Source, opts.Namespace)} {
		if err := apply.Object(ctx, c, obj); err != nil {
			return fmt.Errorf("applying %T %q: %w", obj, obj.GetName(), err)
		}
	}
	return nil
}
