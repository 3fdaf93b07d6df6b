// Package numbers reads numbers, times of day and dates as people write them in Chinese and English: 三, 3 and three; 15:00,
// 3pm and 下午三点; May 5th and 5月5日. It reads what is written and resolves nothing: "tomorrow" is for internal/lang/dates.
//
// Texts are folded before: in lower case, half width, simplified characters.
package numbers
