package server

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// maskedFields says which of the allowed fields an update changes, following AIP-134: those the mask names, all with
// "*", and without a mask those that are set.
func maskedFields(mask *fieldmaskpb.FieldMask, m proto.Message, allowed []string, resource string, v *memory.Violations) []string {
	if len(mask.GetPaths()) == 1 && mask.GetPaths()[0] == "*" {
		return allowed
	}
	var fields []string
	if mask == nil {
		for _, field := range allowed {
			reflected := m.ProtoReflect()
			if reflected.Has(reflected.Descriptor().Fields().ByName(protoreflect.Name(field))) {
				fields = append(fields, field)
			}
		}
	}
	for _, path := range mask.GetPaths() {
		if !slices.Contains(allowed, path) {
			v.Add("update_mask", "names %q: only %s can be changed", path, strings.Join(allowed, ", "))
			continue
		}
		fields = append(fields, path)
	}
	if len(fields) == 0 && len(*v) == 0 {
		v.Add("update_mask", "names nothing, and nothing is set in %s: say what to change (%s)", resource, strings.Join(allowed, ", "))
	}
	return fields
}
