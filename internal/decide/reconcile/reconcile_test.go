package reconcile_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/decide/reconcile"
	"github.com/memsidecar/memsidecar/internal/memory"
)

// in reconciles statements of one dialogue, said a minute apart, with what is known; memories have their texts for ids.
func in(t *testing.T, rules reconcile.Rules, known []string, statements ...memory.Statement) []decide.Resolution {
	t.Helper()
	var near []decide.Neighbor
	for _, text := range known {
		at := spring.AddDate(0, -1, 0)
		near = append(near, decide.Neighbor{Memory: memory.Memory{ID: text, Text: text, ObservedAt: at, LastSaidAt: at}})
	}
	var input decide.ReconcileInput
	for i, s := range statements {
		s.ObservedAt = spring.Add(time.Duration(i) * time.Minute)
		input.Claims = append(input.Claims, decide.Claim{MemoryID: fmt.Sprint("#", i), Statement: s, Near: near})
	}
	list, err := rules.Reconcile(t.Context(), input)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func text(s string) memory.Statement { return memory.Statement{Text: s} }

// TestWithdrawn: a request to forget concerns the memories that are about what it names, and nothing that is only similar.
func TestWithdrawn(t *testing.T) {
	english := []string{
		"The user's ex is called Tom.", "The user met the ex in Paris.", "The user lives in Leeds.", "The user works at Google.",
		"The user likes cats.", "The user's sister likes cats.", "The user does not like cat hair.", "The user's phone number is 555-0123.",
		"The user has a dentist appointment on Friday.", "The user likes jazz.",
	}
	chinese := []string{
		"用户的前男友叫小李", "用户和前男友去过巴黎", "用户住在北京", "用户在腾讯上班", "用户喜欢猫", "用户的妹妹喜欢猫", "用户不喜欢猫毛",
		"用户的手机号是13800000000", "用户周五要去看牙医", "用户的男朋友叫小王", "用户喜欢爵士乐",
	}
	for _, test := range []struct {
		request string
		known   []string
		gone    []int
	}{
		{"the user's ex", english, []int{0, 1}},
		{"forget everything about the user's ex", english, []int{0, 1}},
		{"The user likes cats.", english, []int{4}},
		{"the user's phone number", english, []int{7}},
		{"the user's job", english, []int{3}},
		{"where the user lives", english, []int{2}},
		{"the dentist appointment", english, []int{8}},
		{"The user likes dogs.", english, nil},
		{"the user's address", english, nil},
		{"everything", english, nil},
		{"that", english, nil},
		{"the user's wife", english, nil},
		{"用户的前男友的事", chinese, []int{0, 1}},
		{"关于前男友的事", chinese, []int{0, 1}},
		{"用户喜欢猫", chinese, []int{4}},
		{"用户的手机号", chinese, []int{7}},
		{"用户的工作", chinese, []int{3}},
		{"用户住在哪里", chinese, []int{2}},
		{"牙医", chinese, []int{8}},
		{"用户喜欢狗", chinese, nil},
		{"用户的妻子", chinese, nil},
		{"所有的事", chinese, nil},
		{"用户说过的话", chinese, nil},
	} {
		r := in(t, reconcile.OnlyForget(), test.known, memory.Statement{Text: test.request, Forget: true})[0]
		var want []string
		for _, i := range test.gone {
			want = append(want, test.known[i])
		}
		if r.Action != decide.TreatWithdraw || !slices.Equal(r.Targets, want) || (len(want) == 0) != strings.Contains(r.Reason, "nothing") {
			t.Errorf("%q withdraws %q (%s), want %q", test.request, r.Targets, r.Reason, want)
		}
	}
}

// TestOneDialogue: statements of one dialogue are compared with each other, in the order in which they were said.
func TestOneDialogue(t *testing.T) {
	got := in(t, reconcile.New(), []string{"用户住在杭州"}, text("用户住在北京"), text("用户住在上海"), text("用户搬到上海了"), text("用户喜欢猫"))
	want := []decide.Resolution{
		{Action: decide.TreatSupersede, Targets: []string{"用户住在杭州"}},
		{Action: decide.TreatSupersede, Targets: []string{"#0"}},
		{Action: decide.TreatSame, Targets: []string{"#1"}},
		{Action: decide.TreatAdd},
	}
	for i := range want {
		if got[i].Action != want[i].Action || !slices.Equal(got[i].Targets, want[i].Targets) {
			t.Errorf("statement %d: %+v, want %+v", i, got[i], want[i])
		}
	}
	back := in(t, reconcile.New(), []string{"用户住在杭州"}, text("用户住在北京"), text("用户住在杭州"))[1] // after all
	if back.Action != decide.TreatSupersede || !slices.Equal(back.Targets, []string{"#0"}) {
		t.Errorf("said first, denied, and said again: %+v", back)
	}
}

// TestLate: what was said before what is known is history, whatever the order in which it comes.
func TestLate(t *testing.T) {
	for _, p := range []pair{
		{"The user lives in Beijing.", "The user moved to Shanghai."},
		{"The user likes cilantro.", "The user no longer likes cilantro."},
		{"The user is looking for a job.", "The user found a job at Tesla."},
		{"用户周一要去看牙医", "牙医的预约改到周四了"},
		{"用户打算去日本旅游", "用户去了日本"},
	} {
		later := decide.Neighbor{Memory: memory.Memory{ID: "new", Text: p.new, ObservedAt: spring.AddDate(0, 0, 1), LastSaidAt: spring.AddDate(0, 0, 1)}}
		r := reconcile.Compare(said(p.old), []decide.Neighbor{later})
		if r.Action != decide.TreatOutdated || !slices.Equal(r.Targets, []string{"new"}) || r.Reason == "" {
			t.Errorf("%q after %q: %+v", p.old, p.new, r)
		}
		if r := reconcile.Compare(said(p.new),
			[]decide.Neighbor{known(p.old), known("The user has a bicycle.")}); r.Action != decide.TreatSupersede || len(r.Targets) != 1 {
			t.Errorf("%q after %q: %+v", p.new, p.old, r)
		}
	}
	again := known("The user lives in Beijing.") // said first, and once more after the statement
	again.Memory.LastSaidAt = spring.AddDate(0, 1, 0)
	if r := reconcile.Compare(said("The user moved to Shanghai."), []decide.Neighbor{again}); r.Action != decide.TreatOutdated {
		t.Errorf("contradicted since: %+v", r)
	}
}

// TestWhichAppointment: an appointment is moved only when it can be told which.
func TestWhichAppointment(t *testing.T) {
	two := []string{"The user has a meeting on Monday.", "The user has a meeting on Thursday."}
	for said, want := range map[string][]string{
		"The meeting was moved to Friday.":                      nil,
		"The user moved the meeting from Monday to Friday.":     two[:1],
		"The Thursday meeting was cancelled.":                   two[1:],
		"The meeting from Thursday has been moved to Saturday.": two[1:],
	} {
		if r := in(t, reconcile.New(), two, text(said))[0]; !slices.Equal(r.Targets, want) {
			t.Errorf("%q: %+v", said, r)
		}
	}
	if r := in(t, reconcile.New(), []string{"用户周五有会议", "用户周三有会议"}, text("周五的会议取消了"))[0]; !slices.Equal(r.Targets, []string{"用户周五有会议"}) {
		t.Errorf("%+v", r)
	}
}

// TestUntrusted: a statement that is not trusted changes nothing, and is no reason for anything.
func TestUntrusted(t *testing.T) {
	s := text("The user moved to Shanghai.")
	s.Quarantine = "no message says so"
	for i, r := range in(t, reconcile.New(), []string{"The user lives in Beijing."}, s, text("The user lives in Beijing.")) {
		if want := []decide.Treatment{decide.TreatAdd, decide.TreatSame}[i]; r.Action != want {
			t.Errorf("statement %d: %+v", i, r)
		}
	}
}

// TestNear: a model's vectors find what is said in other words; those of the embedded one are no evidence.
func TestNear(t *testing.T) {
	n := known("The user works as a doctor.")
	s := said("Medicine is what he does for a living.")
	if r := reconcile.Compare(s, []decide.Neighbor{n}); r.Action != decide.TreatAdd {
		t.Errorf("without a model: %+v", r)
	}
	n.Cosine = 0.95
	if r := reconcile.Compare(s, []decide.Neighbor{n}); r.Action != decide.TreatSame {
		t.Errorf("with a model: %+v", r)
	}
}

// TestProbes: what is brought up to date is looked for, though it has no word in common.
func TestProbes(t *testing.T) {
	for said, kept := range map[string]string{
		"用户搬到上海了": "The user lives in Beijing.", "The user found a new job at Tesla.": "用户在找工作",
		"The user got married.": "The user has a girlfriend.", "用户辞职了": "用户的职业是会计",
	} {
		probes := reconcile.New().Probes(text(said))
		keeps := func(text string) bool {
			return slices.ContainsFunc(probes, func(p decide.Probe) bool { return p.Query != "" && p.Keep(&memory.Memory{Text: text}) })
		}
		if !keeps(kept) || keeps("The user likes jazz.") {
			t.Errorf("%q probes %d times, and keeps the wrong memories", said, len(probes))
		}
	}
	if n := len(reconcile.New().Probes(text("The user likes jazz."))); n > 0 {
		t.Errorf("%d probes for nothing", n)
	}
}

func FuzzCompare(f *testing.F) {
	f.Add("The user lives in Beijing.", "The user moved to Shanghai.")
	f.Add("用户把会议改到周五了", "用户周三有会议")
	f.Add("the user's  's is\xff", "用户的的的是")
	f.Fuzz(func(t *testing.T, a, b string) {
		r := reconcile.Compare(said(a), []decide.Neighbor{known(b)})
		if (r.Action == decide.TreatAdd) != (len(r.Targets) == 0) {
			t.Errorf("%q beside %q: %+v", a, b, r)
		}
		in(t, reconcile.New(), []string{b}, memory.Statement{Text: a, Forget: true})
		reconcile.New().Probes(text(a))
	})
}
