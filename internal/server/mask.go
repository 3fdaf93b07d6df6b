package server

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// maskedFields returns which of the allowed fields an update changes, following AIP-134: the fields in the mask, all fields for "*", and
// the fields that are set when there is no mask.
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
			v.Add("update_mask", "names %q, which cannot be changed: use %s", path, strings.Join(allowed, ", "))
			continue
		}
		fields = append(fields, path)
	}
	if len(fields) == 0 && len(*v) == 0 {
		v.Add("update_mask", "is empty, and no field of %s is set: set the fields to change (%s)", resource, strings.Join(allowed, ", "))
	}
	return fields
}
