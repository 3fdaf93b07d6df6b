package config

import (
	"fmt"
	"reflect"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// Quota is how much may be stored of something in a namespace, 0 for any amount: what is set for all, unless the first entry of
// namespaces that fits says otherwise.
func (c *Config) Quota(namespace string, name memory.QuotaName) int64 {
	for i := range c.Namespaces {
		if n := &c.Namespaces[i]; n.Fits(namespace) {
			if own := n.quota(name); own != nil {
				return *own
			}
			break
		}
	}
	switch l := &c.Limits; name {
	case memory.QuotaNamespaceMemories:
		return l.NamespaceMemories
	case memory.QuotaNamespaceHistory:
		return l.NamespaceHistoryBytes
	case memory.QuotaUserHistory:
		return l.UserHistoryBytes
	case memory.QuotaNamespaceLists:
		return l.NamespaceLists
	case memory.QuotaUserLists:
		return l.UserLists
	}
	return 0
}

// quota is what the entry says of a quota, nil for nothing.
func (n *Namespace) quota(name memory.QuotaName) *int64 {
	switch name {
	case memory.QuotaNamespaceMemories:
		return n.NamespaceMemories
	case memory.QuotaNamespaceHistory:
		return n.NamespaceHistoryBytes
	case memory.QuotaUserHistory:
		return n.UserHistoryBytes
	case memory.QuotaNamespaceLists:
		return n.NamespaceLists
	case memory.QuotaUserLists:
		return n.UserLists
	}
	return nil
}

// validateQuotas checks the quotas of some namespaces by the limits of those for all.
func (n Namespace) validateQuotas(key string, check func(key, problem, fix string)) {
	for field := range reflect.TypeFor[Limits]().Fields() {
		name := field.Tag.Get("koanf")
		value := n.quota(memory.QuotaName(name))
		if value == nil {
			continue
		}
		if fix := outside(reflect.ValueOf(*value), field.Tag); fix != "" {
			check(key+"."+name, fmt.Sprintf("is %d", *value), fix)
		}
	}
}
