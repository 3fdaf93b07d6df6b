package config

import (
	"fmt"
	"reflect"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// Quota returns a quota of a namespace, 0 for unlimited: the general limit, unless the first matching entry of namespaces overrides it.
func (c *Config) Quota(namespace string, name memory.QuotaName) int64 {
	for i := range c.Namespaces {
		if n := &c.Namespaces[i]; n.Matches(namespace) {
			if own := n.quota(name); own != nil {
				return *own
			}
			break
		}
	}
	if of, ok := quotas[name]; ok {
		return of.all(&c.Limits)
	}
	return 0
}

// quotas are the fields of each quota: the general one, and the one of an entry of namespaces.
var quotas = map[memory.QuotaName]struct {
	all func(*Limits) int64
	own func(*Namespace) *int64
}{
	memory.QuotaNamespaceMemories: {
		func(l *Limits) int64 { return l.NamespaceMemories },
		func(n *Namespace) *int64 { return n.NamespaceMemories },
	},
	memory.QuotaNamespaceHistory: {
		func(l *Limits) int64 { return l.NamespaceHistoryBytes },
		func(n *Namespace) *int64 { return n.NamespaceHistoryBytes },
	},
	memory.QuotaUserHistory: {
		func(l *Limits) int64 { return l.UserHistoryBytes },
		func(n *Namespace) *int64 { return n.UserHistoryBytes },
	},
	memory.QuotaNamespaceLists: {
		func(l *Limits) int64 { return l.NamespaceLists },
		func(n *Namespace) *int64 { return n.NamespaceLists },
	},
	memory.QuotaUserLists: {func(l *Limits) int64 { return l.UserLists }, func(n *Namespace) *int64 { return n.UserLists }},
}

// quota returns the entry's value for a quota, nil when it has none.
func (n *Namespace) quota(name memory.QuotaName) *int64 {
	if of, ok := quotas[name]; ok {
		return of.own(n)
	}
	return nil
}

// validateQuotas checks the quotas of namespaces against the limits of the general ones.
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
