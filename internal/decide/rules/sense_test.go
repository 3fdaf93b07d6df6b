package rules

import "testing"

// The same word tells something in one company and nothing in another.
func TestSenses(t *testing.T) {
	r := newRules(t, Config{})
	for idle, telling := range map[string]string{
		"My view is that it could change fields like journalism": "I really like journalism",
		"I am interested in how planes fly":                      "I am interested in old planes",
		"I am thinking about some examples":                      "I am thinking about moving to Oslo",
		"I need to know the answer":                              "I need to renew my passport",
		"I need to update the entry":                             "I need to update my passport this Friday",
		"I see that machine learning is popular":                 "I am currently learning Polish",
		"I carry everyday things":                                "I swim everyday",
		"I was deeply moved by that":                             "I moved to Oslo",
		"It shows how our brains work":                           "We work in a brewery",
		"I take line 4":                                          "I am 43",
		"I opened 'My Life as a Chef and How I Love to Cook'":    "I cooked after reading 'Salt Fat Acid Heat' and loved it",
		"我整理了一下销售脚本":                                             "我做销售",
		"我调了一下用户偏好":                                              "我更偏好安静的餐厅",
		"我调了3个参数":                                                "我做的应用有500个用户",
		"我加了一个手机号字段":                                             "我的手机号是13800000000",
		"我把cron间隔调了":                                             "我今年43岁",
	} {
		if v, s := consider(t, r, talk(idle)); v.Remember {
			t.Errorf("%q is remembered as %q: %s", idle, texts(s), v.Reason)
		}
		if v, _ := consider(t, r, talk(telling)); !v.Remember {
			t.Errorf("%q is not remembered: %s", telling, v.Reason)
		}
	}
}
