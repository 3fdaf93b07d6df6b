package server

import (
	"time"

	"google.golang.org/grpc"

	"github.com/memsidecar/memsidecar/internal/manage/audit"
	"github.com/memsidecar/memsidecar/internal/memory"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

const (
	defaultAuditUsers    = 20
	maxAuditUsers        = 200
	defaultAuditExamples = 3
	maxAuditExamples     = 20
	progressEvery        = time.Second
)

var findings = newNames(map[memsidecarv1.AuditFinding]audit.Finding{
	memsidecarv1.AuditFinding_AUDIT_FINDING_DUPLICATE:      audit.Duplicate,
	memsidecarv1.AuditFinding_AUDIT_FINDING_NEAR_DUPLICATE: audit.NearDuplicate,
	memsidecarv1.AuditFinding_AUDIT_FINDING_JUNK:           audit.Junk,
	memsidecarv1.AuditFinding_AUDIT_FINDING_QUARANTINED:    audit.Quarantined,
	memsidecarv1.AuditFinding_AUDIT_FINDING_STALE:          audit.Stale,
	memsidecarv1.AuditFinding_AUDIT_FINDING_UNSUPPORTED:    audit.Unsupported,
	memsidecarv1.AuditFinding_AUDIT_FINDING_WITHOUT_VECTOR: audit.WithoutVector,
})

// AuditMemories implements memsidecarv1.AdminServiceServer.
func (s *adminService) AuditMemories(r *memsidecarv1.AuditMemoriesRequest, stream grpc.ServerStreamingServer[memsidecarv1.AuditMemoriesResponse]) error {
	query, err := toAuditQuery(r)
	if err != nil {
		return err
	}
	reported := time.Now()
	report, err := s.Auditor.Run(stream.Context(), query, func(users, memories int64) error {
		if time.Since(reported) < progressEvery {
			return nil
		}
		reported = time.Now()
		return stream.Send(&memsidecarv1.AuditMemoriesResponse{Record: &memsidecarv1.AuditMemoriesResponse_Progress{
			Progress: &memsidecarv1.AuditProgress{UserCount: users, MemoryCount: memories},
		}})
	})
	if err != nil {
		return err
	}
	for _, account := range report.Users {
		err := stream.Send(&memsidecarv1.AuditMemoriesResponse{Record: &memsidecarv1.AuditMemoriesResponse_User{User: fromAccount(account)}})
		if err != nil {
			return err
		}
	}
	return stream.Send(&memsidecarv1.AuditMemoriesResponse{Record: &memsidecarv1.AuditMemoriesResponse_Total{Total: fromAccount(report.Total)}})
}

func toAuditQuery(r *memsidecarv1.AuditMemoriesRequest) (audit.Query, error) {
	var v memory.Violations
	scope := wholeScope(r.GetScope(), false, &v)
	q := audit.Query{
		Namespace: scope.Namespace, UserID: scope.UserID, MaxUsers: defaultAuditUsers, MaxExamples: defaultAuditExamples,
	}
	if r.MaxUsers != nil {
		q.MaxUsers = int(r.GetMaxUsers())
		if q.MaxUsers < 0 || q.MaxUsers > maxAuditUsers {
			v.Add("max_users", "is not between 0 and %d", maxAuditUsers)
		}
	}
	if r.MaxExamples != nil {
		q.MaxExamples = int(r.GetMaxExamples())
		if q.MaxExamples < 0 || q.MaxExamples > maxAuditExamples {
			v.Add("max_examples", "is not between 0 and %d", maxAuditExamples)
		}
	}
	return q, v.Err()
}

func fromAccount(a *audit.Account) *memsidecarv1.MemoryAudit {
	p := &memsidecarv1.MemoryAudit{
		UserId: a.UserID, UserCount: a.Users,
		ActiveCount: a.Active(), SupersededCount: a.Statuses[memory.StatusSuperseded], ExpiredCount: a.Statuses[memory.StatusExpired],
		QuarantinedCount: a.Statuses[memory.StatusQuarantined], WithdrawnCount: a.Statuses[memory.StatusWithdrawn],
		DuplicateCount: a.Findings[audit.Duplicate], NearDuplicateCount: a.Findings[audit.NearDuplicate], JunkCount: a.Findings[audit.Junk],
		DoubtfulCount: a.Doubtful, DoubtfulShare: a.DoubtfulShare(), StaleCount: a.Findings[audit.Stale],
		UnsupportedCount: a.Findings[audit.Unsupported], WithoutVectorCount: a.Findings[audit.WithoutVector],
		ElsewhereCount: a.Elsewhere, CutReason: a.Cut,
	}
	for _, e := range a.Examples {
		p.Examples = append(p.Examples, &memsidecarv1.AuditExample{
			Finding: findings.toProto[e.Finding], MemoryId: e.MemoryID, Text: e.Text, Reason: e.Reason,
			OtherMemoryId: e.OtherID, OtherText: e.OtherText,
		})
	}
	return p
}
