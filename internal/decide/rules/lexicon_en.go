package rules

// lexiconEN are the English phrases of the default signals, separated by commas or line ends; "~" stands for all forms of a verb.
// Contractions are expanded ("do not"), as in the text.
var lexiconEN = map[string]string{
	SignalExplicit: `remember, keep in mind, bear in mind, note that, note down, note, take note, take a note, make a note, make note
		do not forget, do not you forget, never forget, do not ever forget, memorize, memorise, write down, write this down,
		write that down, write it down, jot down
		save this, save that, record that, record this, for future reference, for the record, for your records, commit to memory, keep a note`,
	SignalTreatment: `call me, from now on, going forward, in the future please, you can call me, refer to me as, address me as
		always answer, always reply, always respond, always use, always call, always speak, always talk, always write, never call me,
		never use, stop calling me, stop using, do not call me, do not use, do not ever
		answer in english, answer in chinese, reply in english, reply in chinese, respond in, speak to me in, talk to me in,
		keep your answers, keep your replies, keep answers, keep responses, be more concise, be concise with me
		next time please, every time you, whenever you, when you answer, when you reply, i prefer you to, i would prefer if you,
		i would like you to always, i want you to always, i want you to call`,
	SignalAppointment: `appointment, meeting, interview, exam, exams, test, dentist, doctor, checkup, check-up, surgery, flight, train,
		wedding, funeral, party, dinner with, lunch with, breakfast with, brunch, coffee with, date with, date
		deadline, due, presentation, conference, concert, gig, show, match, game, recital, ceremony, graduation, class, lesson, course,
		workshop, webinar, call with, court, delivery, move in, moving out, orientation, starts, begins, first day
		reservation, booking, booked, scheduled, arrive~, land~, depart~, fly~ to, catch up with, meet~, meet up, haircut, vet, therapist,
		therapy, session, marathon, race, hearing, reunion, barbecue, bbq, rehearsal, match, picnic, baby shower`,
	SignalHealth: `allergic, allergy, allergies, diabetes, diabetic, asthma, asthmatic, migraine, migraines, insomnia, depression,
		depressed for, anxiety, adhd, autism, autistic, epilepsy, lactose intolerant, gluten free, celiac, coeliac, intolerant
		vegan, vegetarian, pescatarian, pregnant, high blood pressure, blood type, blood pressure, colorblind, color blind, nearsighted,
		deaf, disabled, disability, wheelchair, surgery, cancer, diagnosed with, chronic, arthritis, eczema, medication, prescribed
		can not eat, do not eat, can not drink, broke my, sprained, injured, injury, quit smoking, quit drinking, stopped smoking, sober,
		bad back, bad knee, bad knees, back pain, knee pain, dyslexia, dyslexic, anemia, anemic, thyroid, tinnitus, high cholesterol`,
	SignalIdentity: `my name is, my name 's, my full name, my nickname, my surname, my first name, my last name, people call me,
		everyone calls me, friends call me, they call me, i go by, my birthday, was born, born in, born on, my age, years old, year old,
		turn~ 
		my pronouns, i am a man, i am a woman, i am male, i am female, i am gay, i am trans, i am single, i am married, i am divorced,
		i am engaged, i am an introvert, i am an extrovert, left-handed, left handed, introvert, extrovert, introverted
		my email, my phone number, my number is, my address, my zodiac, my blood type, i am tall, i weigh, my height, my weight, my size,
		shoe size, my religion, christian, muslim, jewish, buddhist, atheist, nationality, native speaker, mother tongue, first language,
		only child`,
	SignalConfiguration: `api, config, configs, configuration, configured, setting, settings, api key, secret key, port, password, ` +
		`environment variable, env var, server, domain, database, endpoint, proxy, wifi, token is`,
	SignalProblemSolution: `problem, problems, bug, bugs, fixed, fix was, the fix, solved, resolved, solution, workaround, root cause, ` +
		`crash, crashes, crashed, crashing, stack trace`,
	SignalDecision: `decided to, decided that, decided on, decided not, decided against, i decided, we decided, have decided, has ` +
		`decided, my decision, made a decision, made the decision, decision to, chose, have chosen, settled on, made up my mind, picked, ` +
		`opted, went with, gave up, given up, agreed to, committed to, ended up choosing, going with`,
	SignalPlan: `plan~ to, plan~ on, planning, my plan, need~ to, have to, must, supposed to, plans to, intend~ to, going to, about to,
		want~ to, would like to, would love to, hope~ to, hoping, aim~ to, goal, goals, dream is, my dream, dream of, dreaming of, someday,
		one day, next year, next month, next week, next summer, this summer, this weekend, this fall, this winter, this spring
		i will be, looking to, looking forward to, saving up, saving for, training for, signed up for, sign up for, registered for,
		applying to, applying for, apply for, considering, looking for a new, looking for a place, looking to buy, thinking about,
		thinking of, tomorrow, resolution, bucket list, will start, will move, will be moving, retire~, ambition, aspire~, would like a new,
		want a, want my, wish to`,
	SignalTask: `working on, work on, building a, building an, developing, writing a, writing an, writing my, preparing, ` +
		`preparing for, prepare for, am reading, been reading, currently reading, halfway through, studying for, studying, learning, ` +
		`renovating, redecorating, finishing my, thesis, dissertation, my project, my homework, assignment, side project, startup, ` +
		`looking for a job, job hunting, looking for an apartment, house hunting, in the middle of, in charge of, responsible for, ` +
		`organizing, organising, researching, training my, busy with, practicing, practising, making a, halfway through, done with, is ` +
		`done, taken care of, to-do list, to do list, to-dos, checklist`,
	SignalPreference: `like, likes, liked, love~, hate~, prefer~, prefer not, enjoy~, adore~, dislike~, detest~, loathe~, favorite, ` +
		`favourite, favorites, favourites, fan of, big fan, am into, are into, is into, was into, been into, got into, really into, so ` +
		`into, super into, more into, less into, obsessed with, addicted to, fond of, crazy about, passionate about, interested in, ` +
		`interest in, fascinated by, fascinated with, bore~ me, leave~ me cold, tedious, does nothing for me, do nothing for me, appeal ` +
		`to me, appeals to me, speak to me, speaks to me, hobby, hobbies, can not stand, cannot stand, could not stand, allergic to ` +
		`people, not a fan, do not care for, picky, pet peeve, guilty pleasure, taste in, rather have, would rather, my style, keen on, ` +
		`terrified of, afraid of, scared of, phobia, good at, bad at, really into, comfort food, partial to, big on, sweet tooth, not ` +
		`keen, drawn to, drawn towards, gravitate~ to, gravitate~ toward, gravitate~ towards, cup of tea, my taste, my tastes, grew out ` +
		`of, grown out of, lost interest in, tired of, captivated by, lean~ toward, lean~ towards, appeals to me`,
	SignalLastingProblem: `struggle~ with, struggling, having trouble, have trouble, trouble sleeping, can not sleep, could not sleep, ` +
		`keep~ getting, keep~ forgetting, stressed, stress, burned out, burnt out, burnout, lonely, laid off, got fired, lost my, broke ` +
		`up, divorce, divorced, separated, debt, in debt, failed, rejected, passed away, died, sick, ill, flu, cold, sore, headache, ` +
		`headaches, hurts, broken, broke, leaking, homesick, overwhelmed, worried about, afraid that, procrastinate~, procrastination, ` +
		`can not afford, never learned, not know how to swim, unemployed, out of work, behind on, stuck on, forgetful, grieving, miss my`,
	SignalRelation: `wife, husband, spouse, partner, girlfriend, boyfriend, fiance, fiancee, fiancé, fiancée, ex, ex-wife, ex-husband, mom,
		mum, mother, dad, father, parents, mama, papa, stepmom, stepdad, son, sons, daughter, daughters, kid, kids, child, children, baby,
		toddler, twins, brother, brothers, sister, sisters, sibling, siblings, grandma, grandmother, grandpa, grandfather, grandparents,
		grandson, granddaughter, uncle, aunt, cousin, cousins, nephew, niece
		family, in-laws, mother-in-law, father-in-law, friend, friends, best friend, bestie, roommate, roommates, flatmate, housemate,
		colleague, colleagues, coworker, coworkers, co-worker, boss, manager, mentor, neighbor, neighbour, neighbors, neighbours, landlord,
		classmate, teacher, student, students, crush, dating, in a relationship, married, engaged
		dog, dogs, cat, cats, puppy, kitten, rabbit, hamster, parrot, pet, pets, goldfish, horse, turtle, bird, golden retriever, labrador,
		corgi, poodle, named`,
	SignalPlace: `live~ in, live~ on, live~ at, live~ with, live~ near, live~ alone, live~ abroad, living, i live, i am from, am from, ` +
		`come~ from, i am in, based in, moved to, move~ to, moved from, moved back, moved in, moving, moved, relocated, relocating, ` +
		`hometown, home town, grew up, raised in, originally from, born in, my apartment, my house, my flat, my place, my neighborhood, ` +
		`my city, my town, my country, my street, rent~, mortgage, bought a house, commute, settled in, immigrated, emigrated, park~ on, ` +
		`parked, local, expat, countryside, suburbs, native of, stay~ in, stay~ with`,
	SignalOccupation: `i am a, i am an, work~ at, work~ for, work~ as, work~ in, work~ with, work~ from home, work~ remotely, work~ nights,
		work~, my job, my work, new job, my career, my profession, my company, my business, my office, my team, employed, self employed,
		self-employed, freelance, freelancer, freelancing, contractor, intern, internship, promoted, promotion, retired, hired, quit my job,
		salary, i earn, shift, shifts, teach~, study~, studied, my degree, my major, majored, majoring, major in, degree, phd, master 's,
		masters, bachelor, university, college, school, high school, grad school, graduate~, freshman, sophomore, junior, senior, student,
		run~ a, own~ a, business
		engineer, developer, programmer, designer, teacher, nurse, doctor, lawyer, accountant, manager, writer, artist, musician, chef,
		driver, salesperson, consultant, scientist, researcher, professor, photographer, journalist, architect, electrician, plumber,
		carpenter, mechanic, librarian, pharmacist, therapist, stay at home, barista, waiter, waitress, bartender, cashier, pilot, farmer,
		shepherd, beekeeper, gardener, baker, tailor, sailor, soldier, postman, midwife, miner, fisherman, butcher, hairdresser, florist,
		optician, for a living, volunteer~, police officer, firefighter, paramedic, veterinarian, dentist, translator, entrepreneur,
		founder, stay-at-home, i speak, speak fluent, fluent in, i play the, certified, certificate, license, licence, served in, army,
		navy, surgeon, biologist, chemist, physicist, economist, plumber, can not drive, can not swim, can not cook, can drive, can swim,
		can play, can speak`,
	SignalExperience: `went, visited, watched, saw, read, finished, attended, travel~ to, traveled, travelled, trip, vacation, holiday, ` +
		`honeymoon, hiked, climbed, tried, ate, had dinner, had lunch, have been to, been to, have seen, have read, have visited, have ` +
		`never, have been in, have been there, first time, met, bought, got, received, won, lost, spent, paid, pay for, cost me, grabbed,` +
		` passed, got into, completed, ran, made, built, cooked, baked, learned, learnt, wrote, played, started, stopped, joined, took, ` +
		`gave, flew, drove, celebrated, adopted, named, broke, fell, used to, when i was, as a kid, as a child, growing up, last week, ` +
		`last weekend, last month, last year, last summer, yesterday, years ago, months ago, weeks ago, days ago, just got, just ` +
		`finished, just came, concert, festival, movie, museum, camping, sold, proposed, published, discovered, volunteered, gone to, ` +
		`came back, survived, ordered, hosted, threw`,
	SignalHabit: `every day, everyday, every morning, every evening, every night, every week, every weekend, every month, every year,` +
		` each morning, each day, every monday, every tuesday, every wednesday, every thursday, every friday, every saturday, every ` +
		`sunday, on mondays, on tuesdays, on wednesdays, on thursdays, on fridays, on saturdays, on sundays, on weekends, daily, weekly, ` +
		`usually, always, never, often, rarely, regularly, sometimes, normally, typically, tend to, most days, twice a, three times a, ` +
		`once a, times a week, before bed, after work, habit, habits, routine, since i was, since childhood, since my childhood, ever ` +
		`since, all my life, my whole life, morning person, night owl, early bird, wake up, get up, go to bed, used to it, smoke~, vape, ` +
		`drink alcohol, do not drink, drink coffee, take my coffee, take my tea, jog~, meditate~, work out, working out, the gym, go to ` +
		`the gym, go running, go for a run, do yoga, collect~, journal`,
	SignalEveryday: `for a walk, take a walk, a walk in the park, a nap, some tea, some coffee, a cup of tea, a cup of coffee, for a ` +
		`run, for a jog, for a swim, for a stroll, went jogging, went running, went swimming, went walking, went shopping, grocery ` +
		`shopping, to the gym, to the park, to a park, to a cafe, to a coffee shop, to the cafe, to the beach, to the supermarket, to ` +
		`the store, to the mall, to the pool, swimming pool, had lunch, had dinner, had breakfast, had coffee, a nap, a shower, a bath, ` +
		`watched tv, did the dishes, did laundry, did the laundry, cleaned the house`,
	SignalPossession: `i have a, i have an, i have two, i have three, i have four, i have several, we have a, i own, my car, my bike, my ` +
		`phone, my laptop, my computer, my pc, my guitar, my piano, i drive, i use, i am using, been using, my garden, my camera, my ` +
		`keyboard, my instrument, my motorcycle, i wear`,
}

// lexiconOther are phrases in other languages, for explicit requests only.
var lexiconOther = map[string]string{
	SignalExplicit: `覚えておいて, 覚えといて, 覚えていて, 覚えて, メモして, メモしておいて, 忘れないで, 忘れないでね, 기억해 줘, 기억해줘, 기억해, 기억하세요, 메모해, 잊지 마, 잊지마
		recuerda, recuerda que, no olvides, no te olvides, toma nota, souviens-toi, souviens toi, rappelle-toi, n'oublie pas, merk dir,
		merke dir, vergiss nicht, lembre-se, lembra que, não esqueça, não se esqueça, ricorda, ricordati, запомни, не забудь`,
}

// neutralEN hold words of signals without their meaning; they are set aside before signals are looked for.
var neutralEN = []string{
	"i am a bit", "i am a little", "i am a lot", "i am a tad", "do i have a", "i have a feeling", "i have a bad feeling", "i have a hunch",
	"i have a request", "i have a favor", "i have a task", "i have a list",
	"look~ like", "feel~ like", "sound~ like", "seem~ like", "smell~ like", "taste~ like", "act~ like", "it is like", "it was like",
	"is like", "was like", "am like", "just like", "something like", "anything like", "nothing like", "things like", "stuff like",
	"people like", "more like", "much like", "like this", "like that", "like a", "like an", "like me", "like you", "if you like",
	"would you like", "do you like", "would like to know", "would like to ask", "would like to see", "would like some", "would like help", "i was like",
	"was a kid", "was a child", "were kids", "no problem", "not a problem", "a question", "have a problem with you", "in my opinion",
	"in my view", "my god", "my goodness", "my bad", "my question", "my point", "my understanding", "my guess", "my mistake", "my pleasure",
	"to be honest", "into account", "have got to", "got to", "got me", "problem-solving", "decision-making", "is always", "are always",
	"was always", "would love to chat", "would love to talk", "would love to discuss", "would love to learn more", "would love to see more",
	"would like to learn more", "looking into", "got it", "got you", "you got", "have got to say", "made me laugh", "made my day",
	"took a look", "read that", "read your", "read it", "saw that", "saw your", "the other day", "my dear friend", "test that", "test it",
	"test this", "show me", "call it", "game changer", "date back", "due to", "cold one", "love it", "love that", "love this",
	"love your", "love you", "like it", "like your", "enjoy your", "hate it", "hate you", "hate that", "love to hear",
	"would love to hear", "would love to know", "glad to meet", "nice to meet you", "pleased to meet you", "meet you", "as always",
	"never mind", "work~ for me", "work~ well", "works", "always wondered", "train of thought", "in the middle of nowhere",
	"want to know", "want to ask", "want to see", "going to try", "will try", "going to ask", "going to check", "met you",
	"thinking about it", "think about it", "thinking about that", "fall in love with this", "got a question", "tried that", "tried it",
	"tried your", "trying that", "try that", "try it", "try this",
}

// weakSelfEN are phrases in the first person without information about the speaker.
var weakSelfEN = []string{
	"i meant", "i never would have thought", "i have never thought about", "i never thought about", "i had not thought",
	"i had not considered", "i have not thought", "i never considered", "i have not considered", "i had never thought",
	"i had never considered", "i thought", "i would have thought", "i would imagine", "i would think", "i would guess", "i can imagine",
	"i would assume", "i always thought", "i never thought", "i would be interested", "i would be curious", "make~ me feel",
	"make~ me wonder", "make~ me think", "get~ me thinking", "got me wondering", "have me wondering", "made me realize",
	"i have been wondering", "i have been curious", "i was curious", "i am often curious", "i have wondered", "i often wonder",
	"i always wonder", "walk~ me through", "remind~ me of", "i have noticed", "i find it", "i found it", "i find that", "i find this",
	"i found that", "i found this", "i got an error", "i get an error", "i am getting an error", "i will take the", "i think", "i guess",
	"i mean", "i see", "i know", "i do not know", "i understand", "i do not understand", "i do not get it", "i do not remember",
	"i can not remember", "i agree", "i disagree", "i do not agree", "i wonder", "i was wondering", "i am wondering",
	"i am just wondering", "i believe", "i suppose", "i hope you", "i hope that", "i hope it", "i hope this", "i appreciate", "i said",
	"i heard", "i have heard", "i asked", "i am asking", "i am curious", "i am just curious", "i bet", "i swear", "i promise", "i doubt",
	"i assume", "i imagine", "i get it", "i got it", "i got you", "i am sorry", "i apologize", "i thank you", "i figured", "i am sure",
	"i am not sure", "i am confused", "i am lost", "i am kidding", "i am just kidding", "i am joking", "i am back", "i am here",
	"i am glad you", "i am done", "i am good", "i am fine", "i am ok", "i am okay", "i am ready", "i am happy to hear", "i am listening",
	"i love it", "i love that", "i love this", "i like it", "i like that", "i like this", "i love you", "i like you", "i like your",
	"i love your", "i hate you", "i hate it", "i hate that", "i can not wait", "i can not believe", "i did not know", "i never knew",
	"i had no idea", "i have no idea", "i have heard that", "i would say", "i should say", "i must say", "i have to say",
	"i have a question", "i have another question", "i have one more question", "i have a few questions", "i got a question",
	"i have questions", "i need you to", "i want you to", "i would like you to", "i need help", "i need some help", "i need your help",
	"i need advice", "i need some advice", "i need a recipe", "i need ideas", "i need some ideas", "i need an idea", "i need suggestions",
	"i need recommendations", "i need to know", "i want to know", "i would like to know", "i would love to know", "i would love to hear",
	"i want to ask", "i would like to ask", "i need a favor", "i will try", "i will give", "i will check", "i will look", "i will think",
	"i will let you know", "i will consider", "i will see", "i will do that", "i will keep", "i am going to try that",
	"i am going to try it", "i will take a look", "i might try", "i may try", "i will be right back", "i will remember",
	"i will definitely try", "i will have a look", "i noticed", "i feel you", "i hear you", "i feel like", "i tried that", "i tried it",
	"i can try", "i can see",
	"let me", "tell me", "give me", "show me", "help me", "send me", "teach me", "excuse me", "trust me", "believe me", "ask me",
	"remind me", "explain to me", "for me", "hit me", "make me a", "write me", "recommend me", "suggest me", "find me", "correct me",
	"bear with me", "thank me", "talk to me", "you me", "surprise me", "cheer me up", "entertain me", "like me", "it seems to me", "to me",
	"my god", "my goodness", "my bad", "in my opinion", "in my view", "in my mind", "my question", "my questions", "my point",
	"my understanding", "my guess", "my mistake", "my pleasure", "my dear", "my apologies", "my thoughts", "oh my", "my message",
	"my previous", "my last message",
	"we all", "let us", "we as humans", "we humans", "we know that", "we can see", "as we know", "we should all", "our planet", "our world",
	"our society", "our universe", "our conversation", "our chat", "us humans", "the us", "in us",
}

// strongSelfEN undo a weak phrase that is part of them.
var strongSelfEN = []string{
	"i know how to", "i thought i", "i thought about my", "i find it hard to", "i find it difficult to", "i know a lot about", "i think i",
	"i believe in god", "i am fine with", "i am good at", "i am back in", "i am back from", "i am ready to move", "i will see my",
	"i will see a", "i will see the", "i will give a", "i will give my", "i will give birth", "i will keep my", "i see a therapist",
	"i see my", "i am lost in", "i am here for a", "i am sure i am", "i imagine i", "i guess i", "i am done with", "my last message from",
	"i heard my", "my dear wife", "i can see a",
	"i hate that i", "i love that i", "i like that i", "i love this city", "i like to", "i need help with my drinking",
}
