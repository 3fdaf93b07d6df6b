package compare_test

import (
	"testing"

	"github.com/memsidecar/memsidecar/internal/lang/compare"
)

func TestCanonical(t *testing.T) {
	for _, same := range [][]string{
		{"三只猫", "3只猫", "3 只猫"},
		{"two cats", "2 cats"},
		{"一万五", "1.5万", "15,000"},
		{"15000元", "一万五千块", "¥15,000", "15000 RMB"},
		{"$1,000", "1000 dollars", "a thousand dollars", "1000 usd"},
		{"70公斤", "140斤", "70 kg", "70千克"},
		{"5公里", "5km", "5 kilometres"},
		{"1米75", "1.75m", "175cm", "一米七五"},
		{"百分之五十", "50%", "50 percent"},
		{"下午三点", "15:00", "3pm", "3 p.m."},
		{"下午三点半", "15:30", "3:30 pm"},
		{"周五", "星期五", "礼拜五", "Friday"},
		{"5月5日", "五月五号", "May 5", "5th of May"},
		{"1990年5月5日", "May 5, 1990", "1990-05-05"},
		{"北京", "北京市", "Beijing", "BEIJING"},
		{"美国", "the US", "USA", "United States", "美國"},
		{"日本", "Japan"},
		{"西班牙", "Spain"},
		{"NYC", "New York", "纽约"},
		{"英语", "英文", "English"},
	} {
		want := compare.Canonical(same[0])
		for _, other := range same[1:] {
			if got := compare.Canonical(other); got != want {
				t.Errorf("%q is %q, and %q is %q", other, got, same[0], want)
			}
		}
	}
	for _, apart := range [][2]string{
		{"3只猫", "4只猫"},
		{"三四只猫", "34只猫"},
		{"三岁半", "三岁"},
		{"两三个", "23个"},
		{"555-0123", "555-123"},
		{"15000元", "15000 dollars"},
		{"1.5", "15"},
		{"70 kg", "70 pounds"},
		{"70公斤", "70斤"},
		{"三点", "15:00"}, // or three in the night
		{"凌晨三点", "下午三点"},
		{"Friday", "Fridays"},
		{"周五", "周六"},
		{"5月5日", "5月6日"},
		{"May 5", "1990-05-05"},
		{"北京", "南京"},
		{"美国", "英国"},
		{"first", "one"},
		{"第三", "3"},
		{"一点", "1:00"},
		{"20世纪90年代", "1990"},
		{"the one", "the 1"},
	} {
		if a, b := compare.Canonical(apart[0]), compare.Canonical(apart[1]); a == b {
			t.Errorf("%q and %q are both %q", apart[0], apart[1], a)
		}
	}
	for _, words := range []string{"the user trusts us", "一半", "十分喜欢", "万一", "三明治", "四川", "a turkey sandwich", "may", "用户喜欢爬山"} {
		if got := compare.Canonical(words); got != words {
			t.Errorf("%q became %q", words, got)
		}
	}
}

func BenchmarkPrepare(b *testing.B) {
	for _, text := range []string{
		"The user has a meeting with two colleagues in Beijing every Friday at 3pm.", "用户每周五下午三点在北京和两个同事开会",
		"The user likes long walks along the river.",
	} {
		b.Run("", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				compare.Prepare(text)
			}
		})
	}
}
