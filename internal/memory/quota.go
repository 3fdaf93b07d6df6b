package memory

import "fmt"

// QuotaName says what a quota limits.
type QuotaName string

// The quotas, by the names of their keys in the configuration.
const (
	QuotaNamespaceMemories QuotaName = "namespace_memories"      // memories of all users, history included
	QuotaNamespaceHistory  QuotaName = "namespace_history_bytes" // bytes of all messages in sessions
	QuotaUserHistory       QuotaName = "user_history_bytes"      // bytes of a user's messages: what was said, and answered to this user
	QuotaNamespaceLists    QuotaName = "namespace_lists"         // registries of results, and lists being shown: so many of each
	QuotaUserLists         QuotaName = "user_lists"
)

// QuotaNames lists all quotas.
func QuotaNames() []QuotaName {
	return []QuotaName{QuotaNamespaceMemories, QuotaNamespaceHistory, QuotaUserHistory, QuotaNamespaceLists, QuotaUserLists}
}

// Standing is how a quota stands.
type Standing struct {
	Quota  QuotaName
	UserID string // empty: the namespace's
	Limit  int64  // 0: any amount
	Used   int64
}

// QuotaError means that something is not stored because its namespace or user would have more than is allowed. Nothing of it was
// written, and waiting is no help.
type QuotaError struct {
	Standing // as it is without what was refused

	Needed int64 // by what was refused
}

// Error says what is used up, how far, and what to do.
func (e *QuotaError) Error() string {
	what, remedy := e.Quota.describe()
	return fmt.Sprintf("the quota limits.%s is used up: %d of %d %s are stored, and %d more are needed; %s, or raise the quota, for all "+
		"or in namespaces",
		e.Quota, e.Used, e.Limit, what, e.Needed, remedy)
}

// describe says what a quota counts, and how to get room.
func (n QuotaName) describe() (what, remedy string) {
	const forget = "export and forget users who are gone (ExportUser, ForgetUser)"
	switch n {
	case QuotaNamespaceMemories:
		return "memories of the namespace", "delete memories (DeleteMemory), " + forget
	case QuotaNamespaceHistory:
		return "bytes of messages of the namespace", "delete sessions (ExportSession, DeleteSession), " + forget +
			", keep history for a shorter time (history.retention)"
	case QuotaUserHistory:
		return "bytes of messages of the user", "delete sessions (ExportSession, DeleteSession), keep history for a shorter time (history.retention)"
	case QuotaNamespaceLists:
		return "numbered lists of the namespace", "delete lists (DeleteNumberedList), " + forget
	case QuotaUserLists:
		return "numbered lists of the user", "delete lists (DeleteNumberedList)"
	}
	return "", ""
}
