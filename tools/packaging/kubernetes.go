package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/kubernetes/pkg/apis/apps"
	appsinstall "k8s.io/kubernetes/pkg/apis/apps/install"
	appsvalidation "k8s.io/kubernetes/pkg/apis/apps/validation"
	"k8s.io/kubernetes/pkg/apis/core"
	coreinstall "k8s.io/kubernetes/pkg/apis/core/install"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// kubernetes does with the manifests what an API server does: it decodes them strictly, fills in defaults, validates them, and
// asks whether the pods may run where the restricted level of Pod Security is enforced.
func kubernetes(_ context.Context, root string) (problems []string, err error) {
	scheme := runtime.NewScheme()
	coreinstall.Install(scheme)
	appsinstall.Install(scheme)
	codecs := serializer.NewCodecFactory(scheme, serializer.EnableStrict)
	security, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		return nil, err
	}
	manifests, err := files(root, "deploy/kubernetes/*.yaml")
	if err != nil {
		return nil, err
	}
	for _, file := range manifests {
		objects, err := documents(file)
		if err != nil {
			return nil, err
		}
		for i, text := range objects {
			where := fmt.Sprintf("%s, object %d: ", file, i+1)
			// The external form for the policy, the internal one, with defaults, for validation.
			external, _, err := codecs.UniversalDeserializer().Decode(text, nil, nil)
			if err != nil {
				problems = append(problems, where+err.Error())
				continue
			}
			object, err := runtime.Decode(codecs.UniversalDecoder(core.SchemeGroupVersion, apps.SchemeGroupVersion), text)
			if err != nil {
				problems = append(problems, where+err.Error())
				continue
			}
			for _, e := range validate(object) {
				problems = append(problems, where+e.Error())
			}
			if deployment, ok := external.(*appsv1.Deployment); ok {
				problems = append(problems, restricted(security, where, &deployment.Spec.Template)...)
			}
		}
	}
	return problems, nil
}

func documents(file string) (objects [][]byte, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	reader := yaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(text)))
	buffer := make([]byte, len(text)+1)
	for {
		n, err := reader.Read(buffer)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		objects = append(objects, bytes.Clone(buffer[:n]))
	}
}

func validate(object runtime.Object) field.ErrorList {
	switch o := object.(type) {
	case *apps.Deployment:
		o.Namespace = "default"
		return appsvalidation.ValidateDeployment(o, corevalidation.PodValidationOptions{})
	case *core.PersistentVolumeClaim:
		o.Namespace = "default"
		return corevalidation.ValidatePersistentVolumeClaim(o, corevalidation.PersistentVolumeClaimSpecValidationOptions{})
	default:
		return field.ErrorList{field.NotSupported(field.NewPath("kind"), fmt.Sprintf("%T", object), []string{"teach tools/packaging to validate it"})}
	}
}

// restricted is what the restricted level forbids the pods.
func restricted(security policy.Evaluator, where string, pod *corev1.PodTemplateSpec) (problems []string) {
	level := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	result := policy.AggregateCheckResults(security.EvaluatePod(level, &pod.ObjectMeta, &pod.Spec))
	if !result.Allowed {
		problems = append(problems, where+"Pod Security: "+result.ForbiddenDetail())
	}
	return problems
}
