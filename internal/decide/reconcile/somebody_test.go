package reconcile_test

import (
	"testing"

	"github.com/memsidecar/memsidecar/internal/decide"
	"github.com/memsidecar/memsidecar/internal/decide/reconcile"
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

// TestWrittenOtherwise: the same number, date, time or name in other words is the same value, and another one is not.
func TestWrittenOtherwise(t *testing.T) {
	check(t, decide.TreatSame, []pair{
		{"用户住在北京", "The user lives in Beijing."},
		{"The user lives in Beijing.", "用户搬到北京了"},
		{"用户住在美国", "The user lives in the United States."},
		{"The user lives in NYC.", "The user lives in New York City."},
		{"The user's birthday is May 5.", "用户的生日是5月5日"},
		{"用户有3只猫", "用户有三只猫"},
		{"The user has two cats.", "The user has 2 cats."},
		{"用户体重70公斤", "用户体重140斤"},
		{"用户身高1米75", "用户身高175cm"},
		{"用户的月薪是一万五", "用户的月薪是15000"},
		{"The user's rent is $1,000.", "The user's rent is 1000 dollars."},
		{"用户每周五下午三点开会", "用户每周五15:00开会"},
		{"用户三十岁", "用户30岁"},
	})
	check(t, decide.TreatSupersede, []pair{
		{"The user lives in Beijing.", "用户住在上海"},
		{"用户住在北京", "The user lives in Nanjing."},
		{"The user's birthday is May 5.", "用户的生日是5月6日"},
		{"用户体重70公斤", "用户体重170公斤"},
		{"用户的月薪是一万五", "用户的月薪是一万六"},
	})
	check(t, decide.TreatAdd, []pair{
		{"用户的生日是5月5日", "用户的生日是1990年5月5日"}, // more exact
		{"用户住在北京", "用户住在北京海淀区"},
		{"用户有3只猫", "用户有四只猫"},
		{"用户每周五下午三点开会", "用户每周五凌晨三点开会"},
		{"用户每周五下午三点开会", "用户每周四15:00开会"},
		{"The user meets Ann on Friday.", "The user meets Ann on Fridays."},
	})
}

// TestMovedOtherwise: which of two meetings is moved is told by its old time, however that is written.
func TestMovedOtherwise(t *testing.T) {
	for _, c := range []struct{ said, first, second string }{
		{"用户要求助手把周五15:00的会议改到周四", "用户星期五下午三点有会议", "用户星期五上午九点有会议"},
		{"The user moved the meeting at 3pm to Thursday.", "The user has a meeting on Friday at 15:00.", "The user has a meeting on Friday at 9:00."},
	} {
		near := []decide.Neighbor{known(c.second), known(c.first)}
		near[0].Memory.ID, near[1].Memory.ID = "other", "meant"
		got := reconcile.Compare(said(c.said), near)
		if got.Action != decide.TreatSupersede || len(got.Targets) != 1 || got.Targets[0] != "meant" {
			t.Errorf("%q: %s %v (%s)", c.said, got.Action, got.Targets, got.Reason)
		}
	}
}

// TestTakenBackInOtherWords: a taste or duty is over however that is told, and nothing else is.
func TestTakenBackInOtherWords(t *testing.T) {
	check(t, decide.TreatSupersede, []pair{
		{"The user used to be into books about war and peace, but lately, they have found themselves drawn more to books with maritime " +
			"themes.", "The user used to like books about maritime themes."},
		{"The user used to dislike sailing, but lately they have found it pretty relaxing.", "The user used to like sailing, but now they " +
			"prefer golf."},
		{"The user used to dislike the idea of sailing, but they have completely changed their mind and now they are really keen to try " +
			"it.", "The user does not like sailing anymore."},
		{"The user finds golf boring.", "The user finds golf fascinating."},
		{"The user just remembered how much they love kayaking.", "The user used to love kayaking, but they are not really into it anymore."},
		{"The user likes films that explore deep space.", "The user used to be into deep space themes."},
		{"The user needs to sign some delivery notes for work.", "The user has signed the delivery notes today."},
		{"The user really needs to tidy their garage.", "The user can remove \"tidy garage\" from their to-do list."},
		{"The user needs to paint the fence.", "The user asked the assistant to remove \"paint the fence\" from their to-do list."},
		{"The user decided to sell the car and approved the move to Leeds.", "The user asked the assistant to remove \"approved the move " +
			"to Leeds\" from the key decisions."},
	})
	check(t, decide.TreatAdd, []pair{
		{"The user needs to write a report for work.", "The user wrote a report for school."},
		{"The user needs to plan the garden layout.", "The user can remove \"plan the kitchen layout\" from their to-do list."},
		{"The user needs to call the bank and the dentist.", "The user asked the assistant to remove \"call the bank\" from their to-do list."},
		{"The user needs to buy a present for mum.", "The user can remove \"buy a present for dad\" from their to-do list."},
		{"The user needs to fix the roof of the shed.", "The user fixed the roof."},
		{"The user finds golf boring.", "The user found the film boring."},
		{"The user found the museum in Porto fascinating.", "The user does not like museums anymore."},
		{"The user loves old films.", "The user finds new films dull."},
		{"The user likes jazz.", "The user changed their mind."},
		{"The user decided to move to Spain.", "The user asked the assistant to remove \"milk\" from the shopping list."},
	})
}
