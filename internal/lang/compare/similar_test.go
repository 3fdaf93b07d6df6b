package compare_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/memsidecar/memsidecar/internal/lang/compare"
)

func TestSame(t *testing.T) {
	for _, test := range []struct {
		a, b string
		same bool
	}{
		{"用户对花生过敏", "用户对花生过敏。", true},
		{"用户很喜欢爵士乐", "用户喜欢爵士乐", true},
		{"用户打算下周去北京出差", "用户计划下周去北京出差", true},
		{"用户的妈妈住在杭州", "用户的母亲居住在杭州", true},
		{"用户在用Ｇｏ写服务端", "用户在用go写服务端", true},
		{"The user likes jazz.", "the user  loves jazz", true},
		{"The user is allergic to peanuts.", "The user is allergic to the peanut", true},
		{"The user is allergic to penicillin.", "The user is alergic to penicillin.", true},
		{"The user doesn't eat pork.", "The user does not eat pork", true},

		{"The user's favourite colour is a dark blue.", "The user's favorite color is a dark blue", true},

		// Only looks like punctuation.
		{"用户每天写C#", "用户每天写C", false},
		{"The user's fridge is at -5 degrees.", "The user's fridge is at 5 degrees.", false},
		// Negations.
		{"用户对花生过敏", "用户对花生不过敏", false},
		{"用户喜欢吃香菜", "用户不喜欢吃香菜", false},
		{"用户已经戒烟，没有再抽", "用户已经戒烟，又再抽", false},
		{"The user is allergic to peanuts.", "The user is not allergic to peanuts.", false},
		{"The user eats meat and fish.", "The user never eats meat and fish.", false},
		{"The user can swim very well.", "The user can't swim very well.", false},
		// Numbers.
		{"用户有3个孩子在读小学", "用户有13个孩子在读小学", false},
		{"用户每天跑三公里的步", "用户每天跑五公里的步", false},
		{"The user takes 1.5 mg of it daily.", "The user takes 15 mg of it daily.", false},
		{"The user has two cats and a dog.", "The user has three cats and a dog.", false},
		// Dates.
		{"The meeting of the user is on Monday.", "The meeting of the user is on Tuesday.", false},
		{"用户周三下午要去看牙医", "用户周四下午要去看牙医", false},
		{"用户的生日是5月12日", "用户的生日是5月21日", false},
		{"用户明天要交房租给房东", "用户昨天要交房租给房东", false},
		{"The user was born in June 1990.", "The user was born in July 1990.", false},
		// Qualifiers.
		{"用户的左膝盖受过伤", "用户的右膝盖受过伤", false},
		{"The user broke the left wrist in May.", "The user broke the right wrist in May.", false},
		{"用户只在周末喝咖啡", "用户在周末喝咖啡", false},
		{"用户偶尔在睡前喝牛奶", "用户总在睡前喝牛奶", false},
		{"用户喜欢喝红茶", "用户喜欢喝茶", false},
		{"The user always drinks coffee at work.", "The user sometimes drinks coffee at work.", false},
		// Names and things.
		{"用户的妹妹名字叫小红", "用户的妹妹名字叫小明", false},
		{"The user's sister is called Anna.", "The user's sister is called Hanna.", false},
		{"用户喜欢吃川菜和火锅", "用户喜欢吃湘菜和火锅", false},
		{"The user likes tea.", "The user likes jazz.", false},
		{"", "", false},
	} {
		if got := compare.Same(test.a, test.b); got != test.same {
			t.Errorf("Same(%q, %q) is %v (similarity %.2f)", test.a, test.b, got, compare.Similarity(test.a, test.b))
		}
		if got := compare.Same(test.b, test.a); got != test.same {
			t.Errorf("reversed: Same(%q, %q) is %v", test.b, test.a, got)
		}
	}
}

func TestNear(t *testing.T) {
	for _, test := range []struct {
		a, b   string
		cosine float64
		near   bool
	}{
		{"用户从事软件开发工作", "用户是一名程序员", 0.95, false}, // 一 is a number: kept apart, to be safe
		{"用户从事软件开发", "他的职业为程序员", 0.95, true},
		{"The user works as a doctor.", "Medicine is what he does for a living.", 0.93, true},
		{"The user works as a doctor.", "Medicine is what he does for a living.", 0.80, false},
		{"The user can eat nuts.", "Nuts are what this person must not have.", 0.97, false},
		{"用户的妹妹名字叫小红", "用户的妹妹名字叫小明", 0.99, false},
		{"用户对花生过敏", "用户对花生不过敏", 0.99, false},
		{"The user's exam is on Monday at the school.", "He writes a test on Tuesday.", 0.95, false},
		{"用户很喜欢爵士乐", "用户喜欢爵士乐", 0, true},
	} {
		if got := compare.Near(test.a, test.b, test.cosine); got != test.near {
			t.Errorf("Near(%q, %q, %.2f) is %v", test.a, test.b, test.cosine, got)
		}
	}
}

func TestSimilarity(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want float64
	}{{"kitten", "sitting", 1 - 3.0/7}, {"abc", "ABC.", 1}, {"abc", "xyz", 0}, {"", "", 0}, {"一二三四", "一二三", 0.75}} {
		if got := compare.Similarity(test.a, test.b); got != test.want {
			t.Errorf("Similarity(%q, %q) is %v, want %v", test.a, test.b, got, test.want)
		}
	}
}

func FuzzSame(f *testing.F) {
	f.Add("用户对花生过敏", "用户对花生不过敏")
	f.Add("a'ſ", "\xff n't")
	f.Fuzz(func(t *testing.T, a, b string) {
		if compare.Same(a, b) != compare.Same(b, a) {
			t.Errorf("Same(%q, %q) depends on the order", a, b)
		}
	})
}

// TestComparableKeepsSimilarTexts: Sufficiently similar texts are never ruled out in advance.
func TestComparableKeepsSimilarTexts(t *testing.T) {
	letters := []rune("abc 茶喝不")
	random := rand.New(rand.NewPCG(1, 2))
	similarPairs, ruledOut := 0, 0
	for range 3000 {
		a := make([]rune, 5+random.IntN(20))
		for i := range a {
			a[i] = letters[random.IntN(len(letters))]
		}
		b := slices.Clone(a)
		for range random.IntN(6) {
			switch i := random.IntN(len(b)); random.IntN(3) {
			case 0:
				b[i] = letters[random.IntN(len(letters))]
			case 1:
				b = slices.Insert(b, i, letters[random.IntN(len(letters))])
			case 2:
				if len(b) > 1 {
					b = slices.Delete(b, i, i+1)
				}
			}
		}
		one, other := string(a), string(b)
		canBe := compare.Prepare(one).Comparable(compare.Prepare(other))
		if compare.Similarity(one, other) > compare.Threshold {
			similarPairs++
			if !canBe {
				t.Errorf("%q and %q are ruled out, with a similarity of %.2f", one, other, compare.Similarity(one, other))
			}
		} else if !canBe {
			ruledOut++
		}
	}
	if similarPairs < 100 || ruledOut < 100 {
		t.Errorf("%d pairs are similar, %d are ruled out: not enough", similarPairs, ruledOut)
	}
}
