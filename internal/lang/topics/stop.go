package topics

import (
	"regexp"

	"github.com/memsidecar/memsidecar/internal/lang"
)

// What is said in every conversation and is nobody's topic, beyond the function words that internal/lang/lexical knows. It is
// kept to words that are hardly ever a part of another one, because it cuts the text wherever one stands.

// maxStopChars is the length of the longest of stopHan.
const maxStopChars = 4

var stopHan = lang.Set(`
今天 明天 昨天 后天 前天 後天 今晚 明晚 昨晚 今早 明早 现在 現在 刚才 剛才 刚刚 剛剛 最近 以前 以后 以後 之前 之后 之後 上次 下次 这次 下周 上周 这周 本周 下週 上週
早上 上午 中午 下午 晚上 时候 時候 时间 時間 小时 小時 分钟 分鐘 周末 週末 周一 周二 周三 周四 周五 周六 周日 星期 今年 去年 明年 每天 天天 马上 馬上
大家 有人 别人 別人 人家 他们 她们 自己 我们 你们 咱们 东西 東西 事情 问题 問題 地方 方面 情况 情況 样子 樣子 意思 办法 辦法 部分
这样 那样 這樣 那樣 这个 那个 這個 那個 一个 一個 一些 有些 有点 有點 一点 一點 一次 一样 一樣 一直 一起 一定 一般 一会 一会儿 一些 很多 好多 许多 不少 多少 几个
觉得 覺得 感觉 感覺 认为 認為 以为 以為 喜欢 喜歡 希望 想要 需要 应该 應該 可能 可以 必须 必須 肯定 估计 估計 好像 似乎 看来 看起来 听说 聽說 打算 准备 準備 开始 開始 继续 繼續
不过 不過 然后 然後 而且 其实 其實 真的 确实 確實 当然 當然 终于 終於 已经 已經 还有 還有 只有 只是 只要 就是 就行 才是 还是 不是 是不是 有没有 有沒有 没有 沒有 不会 不會 不能 不要 不想 不用 不行 不错 不錯 不好 不知道 没事 沒事 没关系 沒關係 没问题 沒問題
好的 好吧 好啊 好呀 好哒 好嘞 好呢 好了 行吧 行啊 可以的 是的 是啊 对的 對的 对啊 對啊 对吧 嗯嗯 哦哦 收到 明白 了解 知道了 同意 支持 随便 隨便
太棒 太棒了 棒极了 高兴 高興 开心 開心 看到 看見 看见 找到 感到 带来 帶來 来说 來說 帮助 幫助 令人 充满 充滿 保持 完全 一切 建议 建議 注意 重要 发现 發現
谢谢 謝謝 多谢 多謝 感谢 感謝 辛苦 客气 客氣 抱歉 对不起 對不起 不好意思 麻烦 麻煩 你好 您好 大家好 早安 晚安 早上好 晚上好 下午好 再见 再見 拜拜 欢迎 歡迎 恭喜 加油 厉害 厲害 牛逼 哎呀 天啊 天哪 我去 卧槽 救命 笑死
更好 更多 更大 很棒 比较 比較 特别 特別 非常 挺好 很好 太好 最好 真好 起来 起來 出来 出來 下来 上来 过来 過來 进去 進去 过去 過去 回来 回來 回去 出去 一下 看看 试试 試試 想想 说说 聊聊 问问
`)

// interjections are laughter and sighs when at least two stand together: 哈哈, 呜呜, 嘿嘿嘿.
const interjections = "哈呵嘿嘻呜嗚啊哦噢嗯哇唉诶欸嗷喔"

// strongFunction are function characters that seldom begin or end a word of three characters or more; see edgeShare.
const strongFunction = "为為以要就都也还還很太又再才挺被给給让讓跟与與但却卻没沒不在是有把和吧了着著"

// neverLast are those that never end a word.
const neverLast = "不很太还還又再也让讓跟但却卻挺"

// joining are function characters that stand between two things.
const joining = "和与與跟及或而并並但"

// localizers may end what is talked about (车上) or only be said of it: 地铁里, 下雨时, 医生说.
const localizers = "说說时時前后後里裡上下中得"

// lightVerbs stand before what is talked about: 去杭州, 吃火锅.
const lightVerbs = "去吃喝买買"

var stopWords = lang.Set(`
thanks thank thx ty yeah yep yup nope nah wow oh ah uh um hmm hm er gonna wanna gotta kinda sorta lol lmao rofl omg btw imo idk tbh brb np ok okay k kk pls plz sorry welcome bye goodbye
morning evening night afternoon today tomorrow yesterday tonight now later soon ago already yet always never often sometimes usually maybe perhaps probably actually really definitely basically literally totally
sure right well good great nice cool fine bad better best awesome amazing lovely glad happy true yes no not
want wants wanted need needs needed like likes liked love think thinks thought guess feel feels felt hope try tries tried trying mean means meant seem seems
get gets got getting go goes going went gone come comes came make makes made making take takes took see sees saw seen look looks looked looking say says said tell told give gives gave put use used using keep let's work works
thing things stuff way ways lot lots bit kind sort one ones two first last next new old big little long much another every everyone everybody someone somebody anyone anybody nobody people guys guy folks man dude
time times day days week weeks weekend month months year years hour hours minute minutes monday tuesday wednesday thursday friday saturday sunday
back around away together enough pretty quite rather almost else though although however since without within along across per via vs etc
help helps helped helping sound sounds show shows showed find finds found talk talks talking talked hear heard hearing stay share bring brings brought start starts started starting wait waiting happen happens happened others fun exciting excited important special far huge super part care appreciate reminds place hard tough small full ha heh
congrats congratulations that's it's what's there's here's who's how's where's he's she's i'm cannot ain't gimme lemme able
`)

// laughter recognises haha, hehehe, hhhh, emmm, lolol, 233333 and the like.
var laughter = regexp.MustCompile(`^(?:(?:a*h+a+){2,}h*|(?:h+[eio]+){2,}h*|h{2,}m*|h+m{2,}|e+m{2,}|u+m{2,}|l+(?:o+l+)+|a+w+|w{3,}|23{2,})$`)
