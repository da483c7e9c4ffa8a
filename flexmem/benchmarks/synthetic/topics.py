"""What filler talk is about: topics with their own words, and the phrases that all of them share.

A topic's rules: ``thing`` (a noun phrase), ``where`` (an adverbial), ``did`` (a past verb phrase), ``plan`` (a base
verb phrase), ``trouble`` (a clause in the past), ``tip`` (a base verb phrase, as advice) and ``claim`` (a clause in the
present). None of them may state what `attributes` and `events` plant, or filler would answer questions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Rules = Mapping[str, Sequence[str]]


def _topic(**rules: str) -> Rules:
    return {name: tuple(phrase.strip() for phrase in text.split(";")) for name, text in rules.items()}


TOPICS: Mapping[str, Rules] = {
    "garden": _topic(
        thing="the compost heap; my tomato seedlings; the {adj} hedge; a row of {veg}; the rain barrel; "
        "the cold frame; that stubborn bramble; the raised beds; a tray of young {veg}; "
        "the slug situation; the trellis; the neighbour's ivy; the herb spiral; a bag of {adj} bark mulch",
        veg="beans; kale; radishes; courgettes; leeks; chard; peas; shallots; parsnips; spinach; squash; lettuce",
        where="in the greenhouse; behind the shed; on the allotment; by the water butt; "
        "at the garden centre in {place}; along the south wall; under the old apple branches",
        did="dug over the {adj} bed {where}; thinned out the {veg}; sowed another row of {veg}; "
        "pulled up {number} buckets of bindweed; pruned the raspberries; turned the compost; "
        "built a cage against the pigeons; watered everything twice; swapped {veg} seeds with {someone}; "
        "tied up the beans",
        plan="mulch the borders; divide the rhubarb; try {veg} in pots; net the brassicas; let one corner go wild; "
        "order {adj} seed potatoes; scrub the flower pots; move the strawberries; sow {veg} under glass",
        trouble="the frost got half the {veg}; snails ate every single leaf; the hose burst {where}; "
        "the soil turned to concrete; blight showed up on the leaves; pigeons found the {veg}; "
        "the wheelbarrow lost its wheel",
        tip="water in the evening; save the eggshells; start the {veg} indoors; rotate the beds each year; "
        "put copper tape round the pots; feed the soil and not the plant; label every tray",
        claim="{veg} will want more sun than that; nettles make a decent fertiliser; it's too early for {veg}; "
        "the clay here never drains; shade is rarely the problem",
    ),
    "cooking": _topic(
        thing="the sourdough starter; a jar of {adj} pickles; that cast-iron pan; the {spice} sauce; "
        "a pot of {soup}; grandmother's recipe card; the {adj} knife set; a tray of {bake}; "
        "the freezer drawer; the pressure cooker; leftover {soup}; a wedge of {adj} cheese",
        spice="cumin; paprika; ginger; tarragon; fennel seed; sumac; black garlic; lemon thyme; allspice; horseradish",
        soup="minestrone; ramen broth; goulash; pea soup; borscht; tomato soup; dal; chowder; onion soup",
        bake="scones; buns; oatcakes; pretzels; shortbreads; muffins; crackers; cinnamon rolls; meringues",
        where="at the market hall in {place}; on the back burner; in the pantry; at the corner shop; "
        "from the Saturday stall",
        did="burnt the {bake}; cooked {soup} for {number} people; ground my own {spice}; "
        "forgot the salt in the {soup}; baked {bake} until midnight; chopped onions for an hour; "
        "rescued a split sauce with {spice}; cleaned out the spice rack; taught {someone} to make {bake}",
        plan="proof the dough overnight; roast a whole cauliflower; make {soup} from scratch; use up the {spice}; "
        "sharpen the knives; bake {bake} for the neighbours; can some plums; simmer the bones for stock",
        trouble="the dough refused to rise; the oven runs {number} degrees too hot; the {soup} tasted of soap; "
        "the smoke alarm went off twice; the blender leaked all over the counter; the {spice} had gone stale",
        tip="salt the water early; toast the {spice} first; rest the dough in the fridge; weigh the flour; "
        "deglaze with vinegar; taste before you season; keep the pasta water",
        claim="{spice} ruins everything it touches; {soup} is better the next day; {bake} freeze well; "
        "butter beats oil here; a dull knife is the real danger",
    ),
    "running": _topic(
        thing="the hill intervals; my left knee; a {adj} training plan; the {number} kilometre loop; "
        "those trail shoes; the foam roller; my resting pulse; the club's track night; the {adj} tailwind; "
        "a pair of compression socks",
        where="along the canal; round the reservoir; on the cinder track; through {place} woods; "
        "up the {place} steps; by the rowing club; over the common",
        did="ran {number} kilometres {where}; stretched for all of {number} minutes; "
        "overtook {someone} on the last bend; cut the long run short; jogged {where} in the dark; "
        "warmed up properly for once; got lapped by a pensioner; did strides {where}; rested for {number} days",
        plan="add one slow run a week; try intervals {where}; strengthen the ankles; get up before the heat; "
        "run without the watch; build up to {number} kilometres; taper properly",
        trouble="a stitch stopped me {where}; my laces snapped; a cramp hit at kilometre {number}; "
        "the watch lost its signal; a dog chased me {where}; the blister opened again",
        tip="keep the easy days easy; shorten the stride; drink before you're thirsty; lace the heel tighter; "
        "sleep more than you train; warm up the calves",
        claim="rest days matter as much as the training; cold air is good for the lungs; "
        "most people start too fast; hills are speed work in disguise; {number} kilometres is plenty",
    ),
    "repairs": _topic(
        thing="the dripping tap; the {adj} banister; that squeaky floorboard; the fuse box; a tin of {adj} varnish; "
        "the bathroom tiles; the loft hatch; the spirit level; the cordless drill; a bag of wall plugs; "
        "the skirting board; the cellar damp; the {adj} radiator",
        where="in the hallway; under the sink; in the cellar; at the builder's yard in {place}; behind the boiler; "
        "up in the loft; next to the stairwell",
        did="replaced a washer {where}; sanded the {adj} door; drilled straight into a pipe; bled the radiators; "
        "filled the cracks {where}; put up {number} shelves; borrowed a ladder from {someone}; rewired a lamp; "
        "stripped {number} layers of wallpaper; levelled the worktop",
        plan="insulate the loft; regrout the shower; rehang the back door; seal the gap {where}; "
        "call an electrician about the fuse box; plaster the ceiling; fit a dimmer",
        trouble="water came through {where}; the drill bit broke off in the wall; nothing here is a right angle; "
        "the paint blistered overnight; the delivery was {number} tiles short; a fuse blew {where}",
        tip="turn off the water first; measure twice; buy {number} spare tiles; wear a mask when sanding; "
        "mark the studs with tape; let the filler dry overnight; photograph the wiring",
        claim="cheap brushes shed hairs; damp always comes back; plumbers never ring back; "
        "oak moves with the weather; primer saves a second coat",
    ),
    "music": _topic(
        thing="the metronome; a {adj} cover version; my practice diary; the second movement; "
        "that chord in bar {number}; the sheet music; a {adj} tape recording; the tuning fork; "
        "the rehearsal room; the {key} scale; an old amplifier; the sound check",
        key="D minor; F sharp; B flat; G major; E minor; A flat; C sharp minor",
        where="in the church hall; at the open stage in {place}; in the practice cellar; on the radio; "
        "at the back of the bus",
        did="practised scales in {key} for {number} minutes; broke a string {where}; "
        "transposed the whole thing to {key}; recorded a demo {where}; lost count in bar {number}; "
        "listened to {someone} rehearse; learned the bridge by heart; tuned everything twice; "
        "made a playlist for {someone}",
        plan="slow the tempo down; sight-read every morning; record the harmony in {key}; swap the strings; "
        "find a quieter room; play it without the score; count out loud",
        trouble="the amplifier hummed all evening; we came in a bar early; the strings went flat {where}; "
        "someone's ringtone was in {key}; the stand collapsed mid-song; my fingers froze",
        tip="practise the hard bar first; use the metronome at half speed; rest the wrists; "
        "sing the line before playing; mark the breaths in pencil; stop while it's still fun",
        claim="{key} sounds best on strings; slow practice is faster; applause covers wrong notes; "
        "vinyl is mostly nostalgia; nobody hears the second verse",
    ),
    "work": _topic(
        thing="the quarterly report; that {adj} spreadsheet; the {number} o'clock meeting; the onboarding folder; "
        "the new ticket system; the coffee machine on our floor; the {adj} slide deck; "
        "a conference call with {place}; the shared calendar; the printer queue; the audit checklist; "
        "the seating plan",
        where="in the open-plan office; in the {place} branch; on the {ordinal} floor; over video; "
        "in the meeting room; in the lift; at the front desk",
        did="rewrote the {adj} slide deck; sat through {number} meetings; answered {number} mails before breakfast; "
        "closed the oldest ticket; mixed up two clients {where}; took minutes {where}; "
        "presented to {number} strangers; cleared my inbox; trained {someone} on the ticket system; "
        "missed the deadline by an hour",
        plan="block my mornings; delegate the minutes; archive the old tickets; ask for a second screen; "
        "say no to one meeting; draft the report early; automate the invoices",
        trouble="the server went down {where}; the client changed everything again; "
        "the projector showed my private mail; the numbers didn't add up; "
        "the fire drill hit mid-presentation; the minutes vanished",
        tip="put the decision in the first line; send the agenda a day ahead; "
        "keep the meeting under {number} minutes; write it down at once; ask who owns it; "
        "turn off the notifications",
        claim="half the meetings could be a mail; nobody reads the second page; deadlines are negotiable; "
        "a short call beats ten mails; the ticket system hates us",
    ),
    "travel": _topic(
        thing="the night train; a {adj} guesthouse; my old rucksack; the ferry timetable; the visa queue; "
        "a {adj} map of {place}; the window seat; the luggage scale; the station café sandwich; "
        "a pocket phrasebook; the {adj} hostel dorm; the delay voucher",
        where="on platform {number}; at the border hut; near {place} harbour; in the waiting room; on the top deck; "
        "at gate {number}; by the ticket machine",
        did="missed the connection {where}; slept {where}; shared a compartment with {number} fencers; "
        "packed far too many socks; haggled over the taxi; got off one stop early; sent {number} postcards; "
        "lost the ticket {where}; followed {someone} to the wrong platform; changed seats twice",
        plan="take the slow line via {place}; travel with hand luggage only; learn {number} phrases; "
        "renew the passport; sit on the left side; leave a day for getting lost; compare the fares",
        trouble="the heating failed {where}; they sold our seats twice; the ferry turned back; "
        "a strike was called {where}; the suitcase opened on the stairs; the map was {number} years old",
        tip="photograph the ticket; carry some coins; ask at the bakery and not at the desk; book the aisle; "
        "keep a dry pair of socks; arrive before dark",
        claim="trains beat planes for anything under {number} hours; hostels have become quieter; "
        "timetables are a form of fiction; everyone overpacks; the view is on the left",
    ),
    "screen": _topic(
        thing="that {adj} detective series; the {genre} film; the season finale; the director's cut; "
        "the dubbed version; a {adj} documentary about {place}; the remote control; the second episode; "
        "the {genre} trailer; the late showing; the subtitles",
        genre="heist; courtroom; zombie; costume; submarine; western; spy; hospital; disaster; ghost; road",
        where="at the drive-in; at the cinema in {place}; on the big screen; on the sofa; in the front row; "
        "on my tablet",
        did="watched {number} episodes in a row; fell asleep {where}; guessed the ending; "
        "argued with {someone} about the {genre} film; rewound the chase scene; cried at an advert; "
        "skipped the credits; dropped the popcorn {where}; read the reviews first",
        plan="give the {genre} series another chance; watch it with subtitles; avoid all spoilers; "
        "book the early showing; start from season {number}; cancel one subscription",
        trouble="somebody talked through the whole thing {where}; the stream froze at the worst moment; "
        "the sound was out of sync; the finale explained nothing; a spoiler popped up; "
        "the seats {where} squeaked",
        tip="skip the first {number} episodes; watch the original; sit in the back third; read the book later; "
        "switch off the motion smoothing; pause before the finale",
        claim="the {genre} genre is played out; the pilot is always slow; nobody can follow that plot; "
        "the score carries the film; sequels are underrated",
    ),
    "weather": _topic(
        thing="the {adj} fog; that hailstorm; the river level; the {adj} heatwave; the storm warning; "
        "my rain jacket; the icy pavement; the first snow; a broken umbrella; the drought; the pollen count; "
        "the thunder",
        where="over {place}; down by the river; on the balcony; across the valley; at the bus stop; on the ring road",
        did="got soaked {where}; shovelled snow for {number} minutes; watched lightning {where}; "
        "wore {number} layers; slipped {where}; lent {someone} an umbrella; taped the windows; "
        "fetched the washing in; waited out the storm {where}",
        plan="check the gutters; stock up on candles; wear proper boots; air the rooms early; "
        "put the plants inside; salt the front steps; buy a fan",
        trouble="the cellar flooded; the buses stopped {where}; the power was out for {number} hours; "
        "the wind took the parasol; the pipes froze; the forecast was wrong again",
        tip="close the shutters by noon; keep a torch handy; wear wool; drink more water; "
        "listen to the local station; stay off the bridge",
        claim="winters used to be longer; fog like that brings sun by noon; thunder clears the air; "
        "the forecast is a guess after {number} days; cold is easier than heat",
    ),
    "photos": _topic(
        thing="the {adj} lens; a roll of expired film; the tripod; the darkroom; that portrait series; "
        "a {adj} filter; the memory card; the light meter; the contact sheet; the {adj} camera strap; "
        "an album from {place}; the exposure settings",
        where="at the {place} viaduct; in the golden hour; on the roof; by the old gasworks; in the darkroom; "
        "under the arcade; at the exhibition opening",
        did="shot {number} frames {where}; forgot the lens cap; developed a roll {where}; sorted {number} pictures; "
        "photographed {someone} against the light; printed the contact sheet; "
        "crawled about {where} for one picture; backed up the memory card; cropped the whole series",
        plan="shoot in black and white; clean the sensor; frame the {adj} print; ask {someone} to model; "
        "scan the old negatives; carry just one lens; submit {number} pictures",
        trouble="the battery died {where}; the film jammed; light leaked onto frame {number}; "
        "a guard sent me away {where}; the card corrupted; every eye was shut",
        tip="get closer; wait for the light; bracket the exposure; turn around once; "
        "delete in the evening and not on the spot; keep the horizon level",
        claim="film forgives more than sensors do; the best lens is the one you carry; backlight flatters everyone; "
        "colour distracts; nobody prints any more",
    ),
    "health": _topic(
        thing="this {adj} cough; the physio exercises; my lower back; the sleep tracker; the waiting room; "
        "a {adj} heat pad; the blood test; the flu jab; a box of lozenges; my reading glasses; "
        "the {number} minute nap; the stretching mat",
        where="at the clinic in {place}; at the pharmacy; on the mat; in the waiting room; over the phone line; in bed",
        did="slept badly for {number} nights; waited {where} for {number} minutes; did the exercises {where}; "
        "cut out sugar for {number} days; pulled a muscle lifting a crate; sneezed through dinner; "
        "booked a check-up; borrowed a heat pad from {someone}; meditated {where}",
        plan="be in bed by ten; walk {number} thousand steps; stretch after lunch; get the prescription renewed; "
        "try the physio's exercises; drink less coffee; rest the eyes",
        trouble="my back seized up {where}; the cough kept me awake; the results were delayed; "
        "the pharmacy had run out; my eyes hurt by noon; I lost my voice {where}",
        tip="breathe through the nose; sit up straight; keep the screen at eye level; take it with food; "
        "write down the symptoms; cool it first and warm it later",
        claim="sleep fixes most things; nobody does the exercises at home; sitting is the new smoking; "
        "naps are not lazy; salt water helps",
    ),
    "money": _topic(
        thing="the electricity bill; a {adj} savings plan; the tax folder; that {adj} refund; the standing order; "
        "the insurance letter; the receipt drawer; the shared account; an overdue fine; the rent increase; "
        "the {number} per cent fee; the budget app",
        where="at the branch in {place}; in the small print; on the hotline; at the kitchen table; "
        "in the online portal; at the counter",
        did="sorted {number} receipts; argued about a fee {where}; paid the fine; cancelled {number} subscriptions; "
        "checked the meter; filled in the form {where}; split the bill with {someone}; "
        "lost the reminder letter; haggled the premium down",
        plan="compare the tariffs; put a little aside each month; ask for instalments; appeal the fine; "
        "file the receipts; read the small print; close the old account",
        trouble="they charged me twice; the hotline played flutes for {number} minutes; the form timed out {where}; "
        "the refund never came; the rate went up again; the cash machine kept my card",
        tip="call before ten; keep every receipt; set a reminder; ask for the manager; pay it in one go; "
        "check the statement weekly",
        claim="small fees add up; paper forms are faster; nobody understands that tariff; cash is easier to budget; "
        "insurance is a bet against yourself",
    ),
    "neighbours": _topic(
        thing="the {adj} stairwell; the noise upstairs; the block party; a parcel for number {number}; "
        "the recycling rota; the communal washing line; the {adj} courtyard; the noticeboard; "
        "the lift inspection; the house meeting; the borrowed ladder; the bike shed key",
        where="in the courtyard; on the landing; at the house meeting; by the letterboxes; in the laundry room; "
        "two doors down",
        did="signed for {number} parcels; swept the {adj} stairwell; complained {where}; "
        "chatted with {someone} {where}; fed the cat two doors down; organised the recycling rota; "
        "returned the ladder; carried a sofa up {number} floors; put up a notice {where}",
        plan="bring up the noise {where}; water plants two doors down; repaint the courtyard bench; "
        "swap keys with {someone}; fix the noticeboard; bake something for the landing",
        trouble="the lift stuck between floors; someone took my parcel; the drummer upstairs was back; "
        "the bins overflowed {where}; the light {where} flickers; a pipe burst upstairs",
        tip="ring the bell and ask; leave a friendly note; label the parcel shelf; use earplugs; "
        "speak to the caretaker; offer cake first",
        claim="every house has one drummer; notes make it worse; the caretaker knows everything; "
        "the walls are made of paper; {number} flats share one bin",
    ),
    "games": _topic(
        thing="the {adj} chess opening; the pub quiz; a {number}-sided die; the jigsaw; the campaign map; "
        "my losing streak; the rulebook; the {adj} scoreboard; the card table; the tournament bracket; "
        "a crossword clue; the final round",
        where="at the pub quiz in {place}; at the club table; in round {number}; on the train; over dessert; "
        "in the tie-break",
        did="lost {number} times in a row; solved the crossword {where}; blundered a rook {where}; "
        "bluffed {someone} out of the pot; came {ordinal} {where}; shuffled badly; "
        "explained the rules for {number} minutes; knocked the board over; dreamed about the endgame",
        plan="learn the endgame; team up with {someone}; play for points only; keep the score honestly; "
        "practise openings; finish the jigsaw; set a time limit",
        trouble="a piece of the jigsaw was missing; nobody knew the capital {where}; the dice were cursed; "
        "the timer ran out; we misread the rulebook; the tie-break was about opera",
        tip="count the cards; control the centre; let the quiet one answer; sleep before the final; "
        "trade when ahead; write down the first guess",
        claim="luck evens out after {number} rounds; the rulebook contradicts itself; openings are overrated; "
        "the quiz master cheats; bluffing is a skill",
    ),
}

# What all topics share. ``friend`` is a person whom the speaker may mention.
COMMON: Rules = _topic(
    adj="old; new; tiny; huge; odd; shabby; lovely; ridiculous; perfect; heavy; noisy; quiet; expensive; cheap; "
    "dusty; shiny; reliable; stubborn; fancy; plain; crooked; spotless; faded; sturdy; flimsy; elegant; clumsy; "
    "gloomy; cheerful; bulky; greasy; fragile; generous; modest; peculiar; rustic; sleek; tangled; worn; wobbly",
    feeling="exhausted; relieved; annoyed; proud; restless; amused; puzzled; hopeful; embarrassed; grateful; bored; "
    "nervous; stunned; content; grumpy; curious; torn; delighted; guilty; calm; overwhelmed; smug; "
    "sentimental; impatient",
    verdict="worth the effort; more trouble than it's worth; better than expected; a bit of a letdown; "
    "oddly satisfying; a complete mess; good enough; a small miracle; hard to explain; "
    "exactly what was needed; not my finest hour; a story for later; beyond repair; surprisingly easy; "
    "harder than it looks; a lesson learned",
    past_time="yesterday evening; the other day; over the weekend; after lunch; last night; "
    "in the middle of the night; before breakfast; on {weekday}; all afternoon; between two appointments; "
    "first thing this morning; on the way back; during the break; a while ago; on {weekday} evening",
    future_time="tomorrow; next week; before {weekday}; over the holidays; at the weekend; when it's quieter; "
    "as soon as I can; some time this month; after {weekday}; in the spring; once this is over; "
    "by the end of the month",
    interjection="Honestly; Well; Right; Oh; Anyway; So; Believe it or not; To be fair; Funny thing; As it happens; "
    "I must say; Mind you; Seriously; Frankly; In short; Of all things; For once; Somehow",
    aftermath="I felt {feeling} afterwards; it was {verdict}; now I'm {feeling}; nobody noticed; "
    "it took {number} minutes; it cost me the whole evening; {someone} laughed at me; I'd do it again; "
    "I needed a nap; it turned out {adj}; we all ended up {feeling}; that was that",
    someone_else="hers; his; theirs; my uncle's; the vicar's; a {feeling} professor's",
    someone="{friend}; {friend}; my uncle; my aunt; the postman; a retired teacher; the lady next door; "
    "a man from {place}; an old schoolmate; {surname} from {place}; the woman from the kiosk; "
    "a student of {someone_else}; a colleague from {place}; the older of the twins; my brother-in-law; "
    "Mrs. {surname}; old Mr. {surname}",
)
