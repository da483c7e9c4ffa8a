"""Proper names, and the values that facts take. Places, firms and people are invented, put together from parts, so
that a long history keeps meeting new words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _phrases(text: str) -> tuple[str, ...]:
    return tuple(phrase.strip() for phrase in text.split(","))


FIRST_NAMES = _words(
    "Marta Ines Alina Greta Noor Thandi Yuki Celia Dagny Farah Hilda Imogen Jolanta Keiko Leila Mirela Nadia Oona "
    "Petra Quilla Rosalind Saskia Tamsin Ulrika Vesna Wilma Xenia Yasmin Zelda Agnes Bettina Carys Dunja Elspeth "
    "Freja Gudrun Henrike Ilse Jacinta Katrin Lorna Malin Nerys Ottilie Paloma Renata Sunniva Tilda Una Valeria "
    "Winnie Zofia Amara Brigid Cosima Delphine Esme Fenna Galina Honor "
    "Owen Bram Jonas Tariq Emeka Hiro Anselm Bastian Casper Dmitri Elias Florian Gustav Hamid Ivo Jasper Kofi Lars "
    "Milan Nils Oskar Piotr Quentin Rafael Stefan Tobias Umar Viktor Wouter Xander Yannick Zoltan Alaric Benedikt "
    "Cormac Dario Edmund Fabian Gareth Henning Isidor Joachim Kasimir Leopold Mattias Nestor Orson Pascal Rupert "
    "Sander Torben Ulf Vaughan Wendell Yorick Zeno Ambrose Barnaby Cedric Dougal"
)

RELATIONS = _words("cousin colleague neighbour friend flatmate classmate godparent")

NAMES: Mapping[str, Sequence[str]] = {
    "weekday": _words("Monday Tuesday Wednesday Thursday Friday Saturday Sunday"),
    "number": _words("two three four five six seven eight nine ten eleven twelve fifteen twenty thirty forty"),
    "ordinal": _words("second third fourth fifth sixth seventh eighth ninth tenth"),
    "digit": _words("1 2 3 4 5 6 7 8 9"),
    "minutes": _words("05 10 15 20 25 30 35 40 45 50 55"),
    "letter": _words("A B C D E F G H K L M P R S T V"),
    "surname_stem": _words(
        "Tarn Halv Bex Velm Or Crad Dun Ell Farr Gol Hask Ing Jarr Kel Lind Marl Nor Ost Penn Quar Rast Sel Thorn Ul "
        "Vand Wex Yar Zeld Brom Clev Drax Esk Finn Grent Holl Isk Kest Lorr Mand Nesb"
    ),
    "surname_end": _words("ow orsen ley ora wick aby mann etti ard quist ham inger oux ova well strand ic erton"),
    "surname": ("{surname_stem}{surname_end}",),
    "place_stem": _words(
        "Tarn Alder Brack Copper Dray Elm Fern Gorse Heron Iris Juniper Kestrel Larch Mallow Nettle Otter Pewter "
        "Quarry Rowan Sorrel Thistle Umber Vale Willow Yarrow Amber Birch Cinder Dusk Ember Flint Garnet Hazel "
        "Ivory Linden"
    ),
    "place_end": _words("brook field mere wick combe ford haven ridge stead holm gate moor bury cross well den"),
    "place": ("{place_stem}{place_end}",),
    "way": _words("Lane Street Road Terrace Row Crescent Avenue Walk Close Parade"),
    "street": ("{place} {way}", "{surname} {way}"),
    "firm_stem": _words(
        "Nor Vel Cal Tri Astra Ber Cor Del Equi Fal Gra Hex Indi Jun Kor Lumi Meri Nexa Opti Pra Quo Rive Sola Tel Uni "
        "Vera Xan Zen Arka Bri"
    ),
    "firm_end": _words("vane dora tix lane mont form path grid wave sphere core pine rra nova scape line mark tera"),
    "firm_kind": _words("Logistics Textiles Instruments Foods Analytics Ceramics Shipping Optics Printing Robotics"),
    "maker": ("{firm_stem}{firm_end}",),
    "firm": ("{maker} {firm_kind}",),
    "shade": _phrases(
        "pistachio, terracotta, cobalt, mustard, lilac, charcoal, apricot, teal, burgundy, ivory, sage, coral, indigo, "
        "ochre, mauve, turquoise, plum, olive, salmon, periwinkle, russet, mint, slate, champagne, cherry, sand, rust, "
        "lavender, jade, denim, peach, graphite, cream, emerald, saffron, aubergine"
    ),
    "tone": _phrases("pale, deep, dusty, bright, muted, soft, warm, smoky"),
    "paint": ("{tone} {shade}", "{shade}"),
    "vehicle": _phrases("hatchback, estate, van, convertible, saloon, pickup, coupé, minibus"),
    "car": ("a {shade} {maker} {vehicle}", "a {tone} {shade} {maker}"),
    "puppy": _words(
        "Pickle Biscuit Waffles Sprocket Domino Truffle Noodle Banjo Figaro Mango Pepper Rocket Tofu Cricket Dumpling "
        "Marble Nugget Olive Pumpkin Quill Radish Scout Tinker Umbra Velvet Widget Yoyo Ziggy Acorn Bramble Cobbler "
        "Doodle Fennel Gizmo Hobnob Inky Jellybean Kipper Lentil Mochi"
    ),
    "trait": _words(
        "Copper Crooked Sleepy Velvet Lucky Silent Golden Wandering Salty Clever Rusty Humble Merry Paper Midnight Tin "
        "Hollow Scarlet Dancing Painted Broken Little Northern Second"
    ),
    "emblem": _words(
        "Kettle Fox Lantern Anchor Sparrow Teapot Compass Walrus Ladder Umbrella Hare Candle Magpie Saucer Barrel Moth "
        "Windmill Pelican Button Harp Thimble Turnip Badger Bell"
    ),
    "café": ("the {trait} {emblem}",),
    "instrument": _phrases(
        "the viola, the oboe, the accordion, the mandolin, the trombone, the banjo, the harp, the marimba, the cello, "
        "the bassoon, the ukulele, the tuba, the zither, the clarinet, the bagpipes, the double bass, the lute, "
        "the xylophone, the piccolo, the sitar, the dulcimer, the saxophone, the harmonica, the concertina, the lyre, "
        "the church organ, the French horn, the bodhrán, the kora, the theremin, the hurdy-gurdy, the recorder"
    ),
    "language": _words(
        "Estonian Basque Swahili Icelandic Tamil Georgian Welsh Hungarian Amharic Latvian Maltese Mongolian Galician "
        "Khmer Slovene Yoruba Armenian Finnish Nepali Albanian Breton Lao Tagalog Quechua Zulu Frisian Uzbek Catalan "
        "Sinhala Faroese Hausa Malay"
    ),
    "allergen": _phrases(
        "cashews, mussels, celery, sesame, kiwi fruit, lupin, mustard seed, hazelnuts, strawberries, egg white, "
        "prawns, buckwheat, pistachios, soy milk, lentils, pine nuts, rye, peaches, oysters, chickpeas, "
        "coriander, mango, poppy seeds, squid, walnuts, honey, pumpkin seeds, oats, crab, macadamias, fenugreek, "
        "lychees"
    ),
    "boss": ("Ms. {surname}", "Mr. {surname}"),
    "dentist": ("Dr. {surname}",),
    "gym_stem": _words("Iron Granite Pulse Summit Titan Vigor Tempo Anvil Stride Forge Apex Kinetic Boulder Motion"),
    "gym_end": _words("leaf house works yard hall point loft barn dock room shed base"),
    "gym": ("{gym_stem}{gym_end}",),
    "phone": ("a {maker} {digit}", "a {maker} {digit}{digit}", "a {maker} {letter}{digit}"),
    "locker": ("{letter}-{digit}{digit}", "{letter}-{digit}{digit}{digit}"),
    "money": ("${digit},{digit}00", "${digit},{digit}50", "${digit}{digit},{digit}00"),
    "hour": _words("4 5 6 7 8 9"),
    "wake": ("{hour}:{minutes}",),
    "milk": _phrases("oat, soy, almond, goat's milk, coconut, rice milk, barista, skimmed"),
    "brew": _phrases("cortado, latte, mocha, macchiato, chai, matcha, flat white, cappuccino"),
    "topping": _phrases("cinnamon, nutmeg, caramel, cardamom, cocoa powder, vanilla, maple syrup, star anise"),
    "drink": ("{milk} {brew} with {topping}",),
    "city": _words(
        "Ljubljana Porto Tallinn Ghent Kraków Valletta Bergen Tbilisi Cádiz Trieste Galway Tromsø Brno Zadar Utrecht "
        "Palermo Riga Lugano Salzburg Plovdiv Aarhus Toulouse Sibiu Bilbao Kaunas Malmö Lucca Heraklion Funchal Mostar "
        "Yerevan Oulu Rennes Bologna Leipzig Córdoba Girona Debrecen Bari Split"
    ),
    "workshop": ("{surname} & Sons", "{surname} Cycles", "{place_stem} Wheelworks"),
    "choir": ("the {place} Larks", "the {place} Singers", "the {place_stem} Chorale"),
    "study": _phrases("history, economics, decline, architecture, chemistry, folklore, ecology, psychology, politics"),
    "subject": _phrases(
        "lighthouses, salt mining, beekeeping, night trains, seaweed, canal locks, board games, street signs, "
        "peat bogs, glass blowing, lullabies, ferry timetables, hedgerows, radio drama, roof gardens, "
        "sign languages, mountain huts, typewriters, tidal mills, school canteens, cable cars, migrating cranes, "
        "market halls, wool dyes"
    ),
    "thesis": ("the {study} of {subject}",),
    "craft_way": _phrases("hand-dyed, second-hand, engraved, knitted, wooden, miniature, restored, felted, leather"),
    "craft": _phrases(
        "yarn, lampshades, notebooks, buttons, teapots, globes, slippers, bookends, puppets, birdhouses, earrings, "
        "chess sets, quilts, cutting boards, music boxes, belts, planters, kites"
    ),
    "goods": ("{craft_way} {craft}",),
    "tree": _phrases(
        "quince tree, medlar, fig tree, silver birch, walnut tree, damson, magnolia, hawthorn, rowan, cherry tree, "
        "olive tree, pear tree, mulberry, ginkgo, sweet chestnut, hornbeam"
    ),
    "heirloom": _phrases(
        "grandfather clock, rowing machine, piano, sewing table, caravan, telescope, potter's wheel, canoe, drum kit, "
        "wardrobe, accordion case, motorbike, loom, film projector, billiard table, tandem, weather vane, greenhouse"
    ),
    "paper": _phrases(
        "tax return, grant application, visa form, dissertation proposal, insurance claim, adoption papers, "
        "patent draft, planning application, scholarship essay, lab report, court statement, tenancy appeal, "
        "book manuscript, audit"
    ),
    "exam": _phrases(
        "lifeguard, sailing, first-aid, driving theory, pilot's, forklift, beekeeping, radio licence, chainsaw, "
        "bartending, notary, welding, scuba, tour guide, sommelier, fire safety"
    ),
    "party": _phrases(
        "murder mystery, fondue, retirement, masquerade, karaoke, housewarming, lantern, chess, harvest, board game, "
        "farewell, pancake, star-gazing, clothes-swap, costume, quiz"
    ),
    "stray": _phrases(
        "tabby kitten, greyhound, rabbit, tortoise, parrot, ferret, guinea pig, hedgehog, cockatiel, gecko, pony, goose"
    ),
    "machine": _phrases(
        "dishwasher, lawnmower, espresso machine, washing machine, printer, sewing machine, tumble dryer, "
        "toaster oven, boiler, record player, bread maker, coffee grinder, chainsaw, air conditioner, "
        "vacuum cleaner, projector"
    ),
    "museum_kind": _phrases(
        "Clock, Tram, Puppet, Mining, Postal, Textile, Maritime, Glass, Toy, Radio, Herring, Bicycle, Paper, Geology, "
        "Furniture, Lighthouse"
    ),
    "museum": ("the {museum_kind} Museum", "the {place} {museum_kind} Museum", "the {surname} Museum"),
    "peak": ("Mount {surname}", "{place_stem} Peak", "{surname} Horn", "{place_stem} Fell"),
    "band_kind": _phrases("Otters, Engines, Postcards, Gardeners, Satellites, Orphans, Tailors, Weathermen, Foxgloves"),
    "band": ("the {trait} {band_kind}", "the {shade} {band_kind}"),
    "bird": _phrases(
        "kingfisher, hoopoe, waxwing, dipper, bittern, goldcrest, nightjar, osprey, redstart, wryneck, avocet, siskin, "
        "lapwing, merlin, nuthatch, shrike, spoonbill, turnstone, wheatear, crossbill, dotterel, egret, fieldfare, "
        "goosander, hobby, jackdaw, linnet, plover, serin, twite"
    ),
    "game": ("{trait} {emblem}s", "{place} Traders", "Lords of {place}", "{emblem} Express", "{trait} Harbour"),
    "novel": (
        "The {trait} {emblem}",
        "A {emblem} for {place}",
        "The {emblem} Maker",
        "Leaving {place}",
        "The Last {emblem} of {place}",
        "{trait} Water",
    ),
    "country": _words(
        "Portugal Estonia Slovenia Morocco Iceland Georgia Vietnam Peru Jordan Malta Norway Uruguay Kenya Latvia Japan "
        "Croatia Bhutan Chile Ghana Ireland Laos Mexico Nepal Oman Poland Senegal Tunisia Cyprus Albania Bolivia"
    ),
    "dish_base": _phrases("tart, stew, salad, dumplings, pie, gratin, curry, risotto, chowder, flatbread, terrine"),
    "dish_main": _phrases(
        "leek, beetroot, mushroom, fennel, salmon, lentil, pumpkin, apricot, spinach, chestnut, artichoke, barley, "
        "rhubarb, parsnip, duck, aubergine"
    ),
    "dish": ("{dish_main} {dish_base}",),
    "skill": _phrases(
        "bookbinding, stone carving, sourdough, letterpress, kintsugi, mushroom identification, silversmithing, "
        "basket weaving, stop-motion animation, wood turning, calligraphy, soap making, cyanotypes, cheese making, "
        "stained glass, paper marbling, bike maintenance, sign painting, fermentation, screen printing, juggling, "
        "map reading"
    ),
    "charity": (
        "the {place} Food Bank",
        "the {place_stem} Hospice",
        "the {place} Repair Café",
        "{place} Mountain Rescue",
    ),
    "find": ("a {trait_small} {relic}",),
    "trait_small": _phrases("brass, cracked, enamel, silver-plated, hand-painted, wind-up, embroidered, carved, tin"),
    "relic": _phrases(
        "barometer, inkwell, jewellery box, doll's house, camera, candlestick, tea caddy, weather house, compass, "
        "opera glass, pocket watch, music stand, birdcage, milk jug, chess clock, snow globe, letter opener, hat stand"
    ),
}
