package v1alpha1

// Condition types.
const (
	// ConditionReady says of a PackageSource that its artifacts are made, and of a Package that its HelmReleases are
	// written. It does not say that those releases are installed: see ConditionReleasesReady.
	ConditionReady = "Ready"
	// ConditionReleasesReady says of a Package that every HelmRelease it made is Ready. When one is not, the message
	// names the first and why.
	ConditionReleasesReady = "ReleasesReady"
)

// Reasons of ConditionReady.
const (
	// ReasonPackageSourceNotFound: there is no PackageSource of the Package's name.
	ReasonPackageSourceNotFound = "PackageSourceNotFound"
	// ReasonVariantNotFound: the PackageSource has no variant of that name.
	ReasonVariantNotFound = "VariantNotFound"
	// ReasonDependenciesNotReady: a Package that this one needs is not there or not Ready yet.
	ReasonDependenciesNotReady = "DependenciesNotReady"
	// ReasonInvalidConfiguration: waiting does not help, something has to be changed by hand.
	ReasonInvalidConfiguration = "InvalidConfiguration"
	// ReasonDependsOnFailed: the releases to wait for could not be worked out.
	ReasonDependsOnFailed = "DependsOnFailed"
	// ReasonHelmReleaseFailed: a namespace or HelmRelease could not be written.
	ReasonHelmReleaseFailed = "HelmReleaseFailed"
	// ReasonReconciliationSucceeded: everything is written.
	ReasonReconciliationSucceeded = "ReconciliationSucceeded"
	// ReasonGeneratorPending: the ArtifactGenerator has no Ready condition yet.
	ReasonGeneratorPending = "ArtifactGeneratorPending"
	// ReasonGeneratorStalled: the ArtifactGenerator lost its Ready condition and asking again did not bring it back.
	ReasonGeneratorStalled = "ArtifactGeneratorStalled"
)

// Reasons of ConditionReleasesReady.
const (
	// ReasonReleasesReady: all of them are Ready.
	ReasonReleasesReady = "ReleasesReady"
	// ReasonReleasesProgressing: at least one is on its way and none has failed.
	ReasonReleasesProgressing = "ReleasesProgressing"
	// ReasonReleasesFailed: at least one has failed.
	ReasonReleasesFailed = "ReleasesFailed"
)

// Labels and annotations that the operator sets or reads.
const (
	// LabelPackage on a HelmRelease names the Package that made it.
	LabelPackage = "cozystack.io/package"
	// LabelPackageSource on an ArtifactGenerator names the PackageSource that made it.
	LabelPackageSource = "cozystack.io/packagesource"
	// LabelPrivileged on a HelmRelease is "true" when its component needs a privileged namespace.
	LabelPrivileged = "cozystack.io/privileged"
	// LabelSystem on a namespace is "true" when it belongs to the platform and not to a tenant.
	LabelSystem = "cozystack.io/system"
	// AnnotationSkipValues on a PackageSource, when "true", keeps the platform's values Secret out of its releases.
	AnnotationSkipValues = "operator.cozystack.io/skip-cozystack-values"
	// AnnotationValuesFiles on a HelmRelease lists the component's values files, comma-separated.
	AnnotationValuesFiles = "cozyhr.cozystack.io/values-files"
)

// DefaultVariant is the variant of a Package that names none.
const DefaultVariant = "default"
