"""The single-valued facts of a person: how they are told, replaced, mused about and asked.

Texts are `str.format` templates over a `Voice` (``who``, ``whose``, ``whom``, ``have``, ``be``, ``do``) and
``value``. Two rules hold for each attribute, and a test checks them: a direct question shares a word stem
with every telling, and a paraphrased one shares none with any.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute. ``value`` names the rule of `NAMES` that its values come from.

    ``tellings`` and ``updates`` state a value; ``musings`` only touch the subject, so they are lures without an answer.
    ``questions`` reuse the tellings' words and ``paraphrases`` don't; ``earlier`` asks what came before ``{current}``.
    An attribute without updates never changes.
    """

    key: str
    value: str
    tellings: tuple[str, ...]
    updates: tuple[str, ...]
    musings: tuple[str, ...]
    questions: tuple[str, ...]
    paraphrases: tuple[str, ...]
    earlier: str = ""


ATTRIBUTES: tuple[Attribute, ...] = (
    Attribute(
        "dentist",
        "dentist",
        (
            "{who} finally found a dentist worth keeping, {value}",
            "{whose} dentist, {value}, had a free slot on short notice",
            "the dentist {who} signed up with is {value}",
        ),
        (
            "{who} {have} changed dentist, and {value} is the new one",
            "from now on {whose} dentist is {value}",
        ),
        (
            "{who} spent the morning reading reviews of every dentist in town",
            "{who} waited forty minutes on the line to reach a dentist",
        ),
        ("Who is {whose} dentist?", "Which dentist {do} {who} have?"),
        ("Who takes care of {whose} teeth?", "Who treats {whose} cavities?"),
        "Who was {whose} dentist before {current}?",
    ),
    Attribute(
        "car",
        "car",
        (
            "{whose} car is {value} that still smells of its previous owner",
            "{who} picked up a second-hand car, {value}",
            "the car {who} ended up buying is {value}",
        ),
        (
            "{who} {have} traded in the car, so it is {value} now",
            "{whose} car these days is {value}",
        ),
        (
            "{who} spent an hour getting dog hair out of the car",
            "{who} got stuck behind a broken-down car for ages",
        ),
        ("What car {do} {who} have?", "Which car is {whose} own?"),
        ("Which vehicle {do} {who} drive?", "What {do} {who} drive?"),
        "What car did {who} have before {current}?",
    ),
    Attribute(
        "job",
        "firm",
        (
            "{who} {have} accepted a job at {value}",
            "{who} signed with {value} and the job starts on a Monday",
            "the job {who} got in the end is at {value}",
        ),
        (
            "{who} {have} moved on to a job at {value}",
            "{whose} new job is at {value}",
        ),
        (
            "{who} talked for half an hour about what a decent job should feel like",
            "{who} rewrote the same job application three evenings in a row",
        ),
        ("Where is {whose} job?", "At which firm {do} {who} have a job?"),
        ("Who pays {whose} salary?", "Which company is {whose} employer?"),
        "Where was {whose} job before {current}?",
    ),
    Attribute(
        "flat",
        "street",
        (
            "{who} {have} rented a flat on {value}",
            "the flat {who} took is on {value}",
            "{whose} flat on {value} gets the evening sun",
        ),
        (
            "{who} {have} packed up again, this time for a flat on {value}",
            "{whose} flat is on {value} now",
        ),
        (
            "{who} measured every wall of the flat twice",
            "{who} dreamed of a flat with a proper pantry",
        ),
        ("On which street is {whose} flat?", "Where is {whose} flat?"),
        ("Where {do} {who} live?", "What is {whose} home address?"),
        "Where was {whose} flat before {current}?",
    ),
    Attribute(
        "puppy",
        "puppy",
        (
            "{who} named the puppy {value}",
            "{whose} puppy answers to {value} by now",
            "after a long vote, {whose} puppy became {value}",
        ),
        (),
        (
            "{who} carried a tired puppy up four flights of stairs",
            "{who} found out that the puppy had eaten half a slipper",
        ),
        ("Which name did {whose} puppy get?", "What did {who} name the puppy?"),
        ("What is {whose} dog called?", "What {do} {who} shout when the dog should come?"),
    ),
    Attribute(
        "café",
        "café",
        (
            "no café in town beats {value}, and {who} {have} tried most",
            "{whose} favourite café is {value}",
            "the café where they know {whose} face is {value}",
        ),
        (
            "{who} {have} gone off the old café, so it is {value} every weekend now",
            "{whose} favourite café has become {value}",
        ),
        (
            "{who} complained that every café closes before five",
            "{who} left an umbrella in some café again",
        ),
        ("Which café {do} {who} like most?", "What is {whose} favourite café?"),
        ("Where {do} {who} go for coffee and cake?", "Which coffee house {do} {who} prefer?"),
        "Which café did {who} like most before {current}?",
    ),
    Attribute(
        "lessons",
        "instrument",
        (
            "{who} {have} started lessons on {value}",
            "{whose} lessons on {value} are on Tuesdays, sore fingers and all",
            "a birthday voucher paid for lessons on {value}, which {who} {have} begun",
        ),
        (
            "{who} {have} swapped the lessons over to {value}",
            "from this month {whose} lessons are on {value}",
        ),
        (
            "{who} had to cancel two lessons because of a cold",
            "{who} added up what all those lessons cost a year",
        ),
        ("What {do} {who} take lessons on?", "What are {whose} lessons on?"),
        ("Which musical instrument {be} {who} learning?", "What {be} {who} learning to play?"),
        "What did {who} take lessons on before {current}?",
    ),
    Attribute(
        "class",
        "language",
        (
            "{who} {have} enrolled in an evening class in {value}",
            "{whose} evening class is in {value} and the homework is brutal",
            "the evening class {who} picked is {value}",
        ),
        (
            "{who} {have} dropped out of the old evening class and taken up {value}",
            "{whose} evening class is {value} this term",
        ),
        (
            "{who} walked home from the evening class in pouring rain",
            "{who} was the only one awake in the evening class",
        ),
        ("What is {whose} evening class in?", "Which evening class {do} {who} attend?"),
        ("Which language {be} {who} studying?", "What language {do} {who} want to speak?"),
        "What was {whose} evening class in before {current}?",
    ),
    Attribute(
        "allergy",
        "allergen",
        (
            "{who} came up in hives, so that is an allergy to {value}",
            "it turns out {who} {have} an allergy to {value}",
            "the test at the clinic says {whose} allergy is to {value}",
        ),
        (),
        (
            "{who} sneezed all week and blamed some allergy",
            "{who} read a long article about allergy tablets",
        ),
        ("What {do} {who} have an allergy to?", "What is {whose} allergy to?"),
        ("What must never be on {whose} plate?", "Which food should {who} avoid?"),
    ),
    Attribute(
        "boss",
        "boss",
        (
            "{whose} boss is {value}, who answers mails at midnight",
            "{who} {have} a boss called {value}",
            "the boss {who} ended up with is {value}",
        ),
        (
            "{who} {have} a new boss, {value}",
            "{value} took over this week as {whose} boss",
        ),
        (
            "{who} did an impression of a shouting boss that had the table in tears",
            "{who} asked the boss for a quieter desk",
        ),
        ("Who is {whose} boss?", "Which boss {do} {who} have?"),
        ("Which manager {do} {who} report to?", "Who manages {whom}?"),
        "Who was {whose} boss before {current}?",
    ),
    Attribute(
        "gym",
        "gym",
        (
            "{who} {have} joined the gym {value}",
            "{whose} gym, {value}, opens at six",
            "the gym with the short queue is {value}, so that is {whose} gym",
        ),
        (
            "{who} {have} cancelled the gym contract and gone over to {value}",
            "{whose} gym is {value} now",
        ),
        (
            "{who} walked past the gym and straight into the bakery",
            "{who} left a towel at the gym",
        ),
        ("Which gym {do} {who} use?", "What is {whose} gym?"),
        ("Where {do} {who} work out?", "Where {do} {who} lift weights?"),
        "Which gym did {who} use before {current}?",
    ),
    Attribute(
        "phone",
        "phone",
        (
            "{whose} phone is {value} with a cracked corner",
            "the phone that {who} got is {value}",
            "{who} settled on {value} as a phone",
        ),
        (
            "the last phone gave up, so {who} {have} {value} now",
            "{whose} phone is {value} as of Friday",
        ),
        (
            "{who} forgot the phone on the roof of a taxi",
            "{who} promised to leave the phone in a drawer on Sundays",
        ),
        ("What phone {do} {who} have?", "Which phone is {whose} own?"),
        ("Which mobile {do} {who} carry?", "What {do} {who} make calls with?"),
        "What phone did {who} have before {current}?",
    ),
    Attribute(
        "internet",
        "maker",
        (
            "{whose} internet comes from {value}, and it drops every evening",
            "{who} signed up with {value} for the internet",
            "the engineer from {value} got {whose} internet going",
        ),
        (
            "{who} {have} moved the internet contract to {value}",
            "{whose} internet is with {value} from this month",
        ),
        (
            "{who} sat on the stairs because the internet only reached that far",
            "{who} spent a whole lunch break cursing the internet",
        ),
        ("Who supplies {whose} internet?", "Where {do} {who} get the internet from?"),
        ("Which broadband provider {do} {who} use?", "Who provides {whose} broadband?"),
        "Who supplied {whose} internet before {current}?",
    ),
    Attribute(
        "bedroom",
        "paint",
        (
            "{who} painted the bedroom {value}",
            "{whose} bedroom is {value}, ceiling and all",
            "two coats of {value} and {whose} bedroom looks like new",
        ),
        (
            "{who} {have} redone the bedroom, it is {value} now",
            "{whose} bedroom has turned {value} over the weekend",
        ),
        (
            "{who} moved the bedroom furniture around at midnight",
            "{who} taped paint samples all over the bedroom",
        ),
        ("What colour is {whose} bedroom?", "In what colour did {who} have the bedroom done?"),
        ("Which shade surrounds {whose} bed?", "What shade {do} {who} wake up to?"),
        "What colour was {whose} bedroom before {current}?",
    ),
    Attribute(
        "locker",
        "locker",
        (
            "{who} {have} been given locker {value} at the pool",
            "{whose} locker at the pool is {value}",
            "at the pool they put {whom} on locker {value}",
        ),
        (
            "the attendant switched {whom} to locker {value}",
            "{whose} locker is {value} from now on",
        ),
        (
            "{who} stood in front of the wrong locker for a while",
            "{who} found a stranger's goggles in the locker",
        ),
        ("Which locker {do} {who} have?", "What number is {whose} locker?"),
        ("Where are {whose} swimming things stored?", "Where {do} {who} keep clothes while swimming?"),
        "Which locker did {who} have before {current}?",
    ),
    Attribute(
        "kitchen",
        "money",
        (
            "{who} {have} set aside {value} for the kitchen",
            "the kitchen may cost {value}, says {whose} spreadsheet",
            "{who} put a limit of {value} on the kitchen",
        ),
        (
            "{who} {have} redone the sums, and the kitchen gets {value}",
            "the limit for {whose} kitchen is {value} now",
        ),
        (
            "{who} looked at kitchen tiles until they all seemed grey",
            "{who} cooked on a camping stove in the half-built kitchen",
        ),
        ("How much may {whose} kitchen cost?", "How much {have} {who} put aside for the kitchen?"),
        ("What is {whose} renovation budget?", "How large is {whose} remodelling budget?"),
        "How much was {whose} kitchen to get before {current}?",
    ),
    Attribute(
        "alarm",
        "wake",
        (
            "{whose} alarm goes off at {value}",
            "{who} set the alarm to {value}",
            "an alarm at {value} is what {who} agreed to",
        ),
        (
            "{who} {have} moved the alarm to {value}",
            "{whose} alarm is at {value} these days",
        ),
        (
            "{who} slept straight through the alarm",
            "{who} threw a sock at the alarm",
        ),
        ("What time is {whose} alarm?", "To what time {do} {who} set the alarm?"),
        ("When {do} {who} get up in the morning?", "When {do} {who} wake up?"),
        "What time was {whose} alarm before {current}?",
    ),
    Attribute(
        "order",
        "drink",
        (
            "{whose} usual order at the counter is {value}",
            "{who} ordered {value}, as usual",
            "the usual order, in {whose} case, means {value}",
        ),
        (
            "{who} {have} a new usual order, {value}",
            "{whose} usual order has changed to {value}",
        ),
        (
            "{who} got somebody else's order and drank it anyway",
            "{who} stood at the counter and forgot the order",
        ),
        ("What is {whose} usual order?", "What {do} {who} usually order at the counter?"),
        ("Which beverage {do} {who} like best?", "What beverage would please {whom}?"),
        "What was {whose} usual order before {current}?",
    ),
    Attribute(
        "holiday",
        "city",
        (
            "{who} {have} booked the summer holiday in {value}",
            "the summer holiday {who} settled on is {value}",
            "{whose} summer holiday will be {value}, tickets and all",
        ),
        (
            "{who} {have} rebooked the summer holiday to {value}",
            "{whose} summer holiday is {value} after all",
        ),
        (
            "{who} argued about the summer holiday over three dinners",
            "{who} made a packing list for the summer holiday already",
        ),
        ("Where is {whose} summer holiday?", "Where will {who} spend the summer holiday?"),
        ("What is {whose} travel destination?", "Which city {do} {who} plan to visit?"),
        "Where was {whose} summer holiday to be before {current}?",
    ),
    Attribute(
        "bicycle",
        "workshop",
        (
            "{who} {have} the bicycle serviced at {value}",
            "{value} serviced {whose} bicycle within a day",
            "nobody but {value} may touch {whose} bicycle",
        ),
        (
            "{who} {have} started taking the bicycle to {value} instead",
            "{whose} bicycle is looked after by {value} now",
        ),
        (
            "{who} pushed the bicycle home with a flat tyre",
            "{who} hung the bicycle from the ceiling of the hallway",
        ),
        ("Where is {whose} bicycle serviced?", "Who looks after {whose} bicycle?"),
        ("Which workshop repairs {whose} bike?", "Who fixes {whose} bike?"),
        "Where was {whose} bicycle serviced before {current}?",
    ),
    Attribute(
        "choir",
        "choir",
        (
            "{who} {have} joined a choir, {value}",
            "{whose} choir is called {value}",
            "the choir that took {whom} in is {value}",
        ),
        (
            "{who} {have} left the old choir for {value}",
            "{whose} choir is {value} now",
        ),
        (
            "{who} hummed something from the choir all through dinner",
            "{who} lent the choir a heater for the rehearsal",
        ),
        ("What is {whose} choir?", "Which choir {be} {who} in?"),
        ("Which vocal ensemble {be} {who} part of?", "With which group {do} {who} sing?"),
        "Which choir was {who} in before {current}?",
    ),
    Attribute(
        "thesis",
        "thesis",
        (
            "{whose} thesis is about {value}",
            "{who} {have} picked {value} for the thesis",
            "the thesis {who} handed the outline in for is about {value}",
        ),
        (
            "{who} {have} switched the thesis to {value}",
            "{whose} thesis will be about {value} instead",
        ),
        (
            "{who} wrote a single sentence of the thesis all day",
            "{who} hid from the thesis by cleaning the oven",
        ),
        ("What is {whose} thesis about?", "What did {who} pick for the thesis?"),
        ("Which topic {be} {who} researching?", "What research topic {do} {who} have at university?"),
        "What was {whose} thesis about before {current}?",
    ),
    Attribute(
        "shop",
        "goods",
        (
            "{who} {have} opened an online shop for {value}",
            "{whose} online shop deals in {value}",
            "the online shop {who} set up is all {value}",
        ),
        (
            "{who} {have} turned the online shop over to {value}",
            "{whose} online shop has nothing but {value} now",
        ),
        (
            "{who} packed parcels for the online shop until two",
            "{who} fought with the photos for the online shop",
        ),
        ("What is {whose} online shop for?", "What {do} {who} have in the online shop?"),
        ("Which goods {do} {who} sell?", "What merchandise {do} {who} sell?"),
        "What was {whose} online shop for before {current}?",
    ),
)
