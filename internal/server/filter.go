package server

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"go.einride.tech/aip/filtering"
	expr "google.golang.org/genproto/googleapis/api/expr/v1alpha1"

	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/vectorstore"
)

// maxFilterBytes limits the length of a filter: the parser recurses for each parenthesis, and a stack overflow ends the process.
const maxFilterBytes = 2000

// parseFilter parses an AIP-160 filter into f. It accepts comparisons joined by AND, which every store can implement. Problems of the
// filter are added to v; a returned error is a bug.
func parseFilter(text string, f *vectorstore.Filter, v *memory.Violations) error {
	if text == "" {
		return nil
	}
	if len(text) > maxFilterBytes {
		v.Add("filter", "is longer than %d bytes", maxFilterBytes)
		return nil
	}
	declarations, err := filtering.NewDeclarations(
		filtering.DeclareStandardFunctions(),
		filtering.DeclareIdent("kind", filtering.TypeString),
		filtering.DeclareIdent("state", filtering.TypeString),
		filtering.DeclareIdent("agent_id", filtering.TypeString),
		filtering.DeclareIdent("language", filtering.TypeString),
		filtering.DeclareIdent("importance", filtering.TypeFloat),
		filtering.DeclareIdent("explicit", filtering.TypeBool),
		filtering.DeclareIdent("create_time", filtering.TypeTimestamp),
		filtering.DeclareIdent("observe_time", filtering.TypeTimestamp),
		filtering.DeclareIdent("true", filtering.TypeBool),
		filtering.DeclareIdent("false", filtering.TypeBool),
	)
	if err != nil {
		return err
	}
	parsed, err := filtering.ParseFilterString(text, declarations)
	if err != nil {
		v.Add("filter", "cannot be parsed: %s", innermost(err))
	} else if err := addCondition(parsed.CheckedExpr.GetExpr(), f); err != nil {
		v.Add("filter", "cannot be used: %s", err)
	}
	return nil
}

// innermost returns the last line of a parser's error. The lines before it repeat the filter for each rule of the grammar.
func innermost(err error) string {
	text := strings.TrimSpace(err.Error())
	return strings.TrimLeft(text[strings.LastIndexByte(text, '\n')+1:], " ^")
}

// addCondition adds a comparison, or several that are joined by AND.
func addCondition(e *expr.Expr, f *vectorstore.Filter) error {
	call := e.GetCallExpr()
	switch call.GetFunction() {
	case filtering.FunctionAnd:
		for _, arg := range call.GetArgs() {
			if err := addCondition(arg, f); err != nil {
				return err
			}
		}
		return nil
	case filtering.FunctionEquals, filtering.FunctionLessThan, filtering.FunctionLessEquals,
		filtering.FunctionGreaterThan, filtering.FunctionGreaterEquals:
		return addComparison(call.GetFunction(), call.GetArgs()[0].GetIdentExpr().GetName(), call.GetArgs()[1], f)
	}
	return fmt.Errorf("only comparisons (=, <, <=, >, >=) joined by AND are supported")
}

func addComparison(op, field string, value *expr.Expr, f *vectorstore.Filter) error {
	switch field {
	case "kind", "state", "agent_id", "language", "explicit":
	case "importance":
		if value.GetConstExpr() == nil {
			return fmt.Errorf("importance must be compared with a number such as 0.5")
		}
		return addImportance(op, value.GetConstExpr(), f)
	case "create_time":
		return addTime(op, field, value, &f.Created)
	case "observe_time":
		return addTime(op, field, value, &f.Observed)
	default:
		return fmt.Errorf("use kind, state, agent_id, language, importance, explicit, create_time or observe_time on the left side")
	}
	if op != filtering.FunctionEquals {
		return fmt.Errorf("%s can only be compared with =", field)
	}
	if field == "explicit" {
		name := value.GetIdentExpr().GetName()
		if name != "true" && name != "false" {
			return fmt.Errorf("explicit must be compared with true or false")
		}
		return setOnce(&f.Explicit, field, name == "true")
	}
	if value.GetConstExpr() == nil {
		return fmt.Errorf("%s must be compared with a text in quotes", field)
	}
	text := value.GetConstExpr().GetStringValue()
	switch field {
	case "agent_id":
		return setOnce(&f.AgentID, field, text)
	case "language":
		return setOnce(&f.Language, field, text)
	case "state":
		return addOneOf(&f.Statuses, field, memory.Status(text), memory.Statuses())
	}
	return addOneOf(&f.Kinds, field, memory.Kind(text), memory.Kinds())
}

// addOneOf sets the value that a field must have. It must be one of the known values.
func addOneOf[T ~string](to *[]T, field string, value T, known []T) error {
	if !slices.Contains(known, value) {
		return fmt.Errorf("%q is not a %s: use one of %v", value, field, known)
	}
	var wanted *T
	if len(*to) > 0 {
		wanted = &(*to)[0]
	}
	*to = []T{value}
	return setOnce(&wanted, field, value)
}

// setOnce sets the value that a field must have.
func setOnce[T comparable](to **T, field string, value T) error {
	if *to != nil && **to != value {
		return fmt.Errorf("a memory has one %s, so it cannot be both %v and %v", field, **to, value)
	}
	*to = &value
	return nil
}

func addImportance(op string, value *expr.Constant, f *vectorstore.Filter) error {
	v := value.GetDoubleValue()
	if i, ok := value.GetConstantKind().(*expr.Constant_Int64Value); ok {
		v = float64(i.Int64Value)
	}
	lowest, highest := v, v
	switch op {
	case filtering.FunctionLessThan:
		lowest, highest = math.Inf(-1), math.Nextafter(v, math.Inf(-1))
	case filtering.FunctionLessEquals:
		lowest = math.Inf(-1)
	case filtering.FunctionGreaterThan:
		lowest, highest = math.Nextafter(v, math.Inf(1)), math.Inf(1)
	case filtering.FunctionGreaterEquals:
		highest = math.Inf(1)
	}
	if f.Importance.Min == nil || lowest > *f.Importance.Min {
		f.Importance.Min = &lowest
	}
	if f.Importance.Max == nil || highest < *f.Importance.Max {
		f.Importance.Max = &highest
	}
	return nil
}

// addTime narrows a period. Times are stored in microseconds, so "after t" begins one microsecond later.
func addTime(op, field string, value *expr.Expr, p *vectorstore.Period) error {
	text := value.GetConstExpr().GetStringValue()
	if call := value.GetCallExpr(); call.GetFunction() == filtering.FunctionTimestamp {
		text = call.GetArgs()[0].GetConstExpr().GetStringValue()
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return fmt.Errorf("%s is compared with %q; use a time such as \"2026-01-31T12:00:00Z\"", field, text)
	}
	const instant = time.Microsecond
	var from, before time.Time
	switch op {
	case filtering.FunctionEquals:
		from, before = t, t.Add(instant)
	case filtering.FunctionLessThan:
		before = t
	case filtering.FunctionLessEquals:
		before = t.Add(instant)
	case filtering.FunctionGreaterThan:
		from = t.Add(instant)
	case filtering.FunctionGreaterEquals:
		from = t
	}
	if from.After(p.From) {
		p.From = from
	}
	if !before.IsZero() && (p.Before.IsZero() || before.Before(p.Before)) {
		p.Before = before
	}
	return nil
}
