package reconcile_test

import (
	"testing"

	"github.com/memsidecar/memsidecar/internal/decide"
)

// TestSomebodyElse: what is told of somebody of the user's takes no place of what is known of the user.
func TestSomebodyElse(t *testing.T) {
	check(t, decide.TreatAdd, []pair{
		{"用户叫张三", "用户有一只猫，叫咪咪，三岁了"},
		{"用户今年30岁", "用户有一只猫，叫咪咪，三岁了"},
		{"用户叫张三", "他是用户的弟弟，叫小明"},
		{"用户住在上海", "他叫小明，是用户的弟弟，住在北京"},
		{"用户住在上海", "小明是用户的弟弟，住在北京"},
		{"用户住在上海", "用户的弟弟叫小明，住在北京"},
		{"用户是老师", "用户的妹妹叫小雨，是医生"},
		{"用户在谷歌工作", "用户有个同事叫李雷，在腾讯工作"},
		{"用户今年35岁", "用户的女儿，五岁，叫朵朵"},
		{"用户喜欢吃辣", "用户的妹妹叫小雨，不喜欢吃辣"},
		{"用户单身", "用户的姐姐在北京，已婚"},
		{"用户的猫叫咪咪", "用户又养了一只猫，叫豆豆"},
		{"The user lives in Paris.", "The user's sister Anna is a nurse and lives in Rome."},
		{"The user lives in Paris.", "The user has a sister who is a nurse, lives in Rome."},
		{"The user works at Google.", "The user's brother is called Tom and works at Apple."},
		{"The user is 30 years old.", "The user's best friend is a baker and is 31 years old."},
		{"The user likes jazz.", "The user's sister likes rock and hates jazz."},
		{"The user lives in Oslo.", "Tom is the user's brother, lives in Leeds."},
	})
	check(t, decide.TreatSupersede, []pair{
		{"用户的妈妈住在上海", "用户的妈妈退休了，住在杭州"},
		{"用户住在上海", "用户换了工作，住在北京"},
		{"用户住在上海", "用户的手机号是13900001111，现在住在北京"},
		{"The user lives in Paris.", "The user has a sister and lives in Rome."},
		{"The user's mother lives in Paris.", "The user's mother retired and lives in Rome."},
	})
}
